import type { NodeState } from "@fairlead/core";

/** Milliseconds that kube-proxy waits for the own Node to be given its podCIDRs. */
export const POD_CIDRS_TIMEOUT_MS = 300_000;

export interface PodCIDRsEvents {
  readonly onKnown: () => void;
  /** They are not what the rules were begun with. */
  readonly onChanged: (before: readonly string[], after: readonly string[]) => void;
}

/**
 * The own Node's podCIDRs, by which detectLocalMode NodeCIDR knows local traffic. As for kube-proxy, the first ones
 * hold for the life of the process.
 */
export class PodCIDRs {
  readonly #events: PodCIDRsEvents;
  #first: readonly string[] = [];

  constructor(events: PodCIDRsEvents) {
    this.#events = events;
  }

  get known(): boolean {
    return this.#first.length > 0;
  }

  see({ podCIDRs }: NodeState): void {
    if (this.known) {
      if (podCIDRs.join() !== this.#first.join()) this.#events.onChanged(this.#first, podCIDRs);
    } else if (podCIDRs.length > 0) {
      this.#first = podCIDRs;
      this.#events.onKnown();
    }
  }
}
