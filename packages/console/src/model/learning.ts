import { systemClock } from "@fairlead/base";
import type { ClusterState, ServiceKey } from "@fairlead/core";
import {
  type LearnedCIDR,
  type LearnedOnce,
  LiveNetworks,
  learnedCIDRs,
  type NetworksOnceParts,
} from "@fairlead/intake";

export interface LearningEnds {
  /** All that there is to know at the start is known; once. */
  readonly onFirst: () => void;
  /** A decision was made: other CIDRs or rules may count, or why one does not is another reason. */
  readonly onDecided: () => void;
}

/** What agents learn of networks from their objects, for as long as these are followed. */
export class Learning {
  readonly live: LiveNetworks;
  #decision: LearnedOnce["decision"] | undefined;
  #onDecided = () => {};

  /** @param settings which objects say CIDRs */
  constructor(settings: NetworksOnceParts["settings"], state: ClusterState) {
    this.live = new LiveNetworks({
      setup: { settings },
      state,
      clock: systemClock,
      onProblem: () => {},
      onDecided: (decision) => {
        this.#decision = decision;
        this.#onDecided();
      },
      keep: () => {},
    });
  }

  start({ onFirst, onDecided }: LearningEnds): void {
    this.#onDecided = onDecided;
    this.live.start({ onFirst, onChange: () => {} });
  }

  /** Undefined until the first decision. */
  now(): LearnedOnce | undefined {
    const decision = this.#decision;
    return decision && { decision, report: this.live.report(), problems: [] };
  }

  /** Those that count as another network's, with their objects. */
  cidrs(): ReadonlyMap<string, LearnedCIDR> {
    return learnedCIDRs(this.live.report().cidrs);
  }

  /**
   * Endpoints of these came, moved or went, and were planned.
   *
   * @returns those that a decision which was made meanwhile has not seen where they are now
   */
  async see(services: ReadonlySet<ServiceKey>): Promise<ReadonlySet<ServiceKey>> {
    await this.live.see(services);
    return this.live.takeConcerned();
  }
}
