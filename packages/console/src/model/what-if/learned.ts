import { systemClock } from "@fairlead/base";
import { ClusterState } from "@fairlead/core";
import { type LearnedOnce, NetworksOnce, type NetworksOnceParts, subscriptions } from "@fairlead/intake";
import type { ObjectSource, OtherSubscription } from "@fairlead/watch";
import { RequestError } from "../../server/request-error.ts";
import type { PastedObjects } from "./pasted.ts";

/** Milliseconds that a user waits for the objects of networks. */
const LONGEST = 10_000;

/** What agents with some settings learn of a source's objects; other objects may be put in place of them. */
export class NetworksReading {
  readonly #once: NetworksOnce;
  #serviceCIDRs: readonly string[] = [];

  constructor(settings: NetworksOnceParts["settings"]) {
    this.#once = new NetworksOnce({ settings, clock: systemClock, onReady: () => {} });
  }

  /** What is asked for alongside Services. */
  get others(): readonly OtherSubscription[] {
    return this.#once.subscriptions;
  }

  /**
   * Reads everything that is asked for, once.
   *
   * @param pasted by what asks for them: they take the place of the source's of the same names
   * @throws RequestError when the source does not give it all
   */
  async read(source: ObjectSource, pasted: ReadonlyMap<OtherSubscription, PastedObjects>): Promise<void> {
    const missing = new Set(["serviceCIDRs", ...this.others.map(nameOf)]);
    const done = new AbortController();
    const have = (what: string) => {
      if (missing.delete(what) && missing.size === 0) done.abort();
    };
    const { serviceCIDRs } = subscriptions({
      state: new ClusterState(),
      problems: { object: () => {} },
      onChange: () => {},
      onNode: () => {},
      onSynced: () => {},
      onServiceCIDRs: (cidrs) => {
        this.#serviceCIDRs = cidrs;
        have("serviceCIDRs");
      },
    });
    const others = this.others.map((other) =>
      overlaid(other, pasted.get(other) ?? new Map(), () => have(nameOf(other))),
    );
    // They come before the lists, so that what is told to be complete has them.
    for (const [other, objects] of pasted) {
      for (const [key, object] of objects) await other.onChange({ type: "upsert", key, object });
    }
    const signal = AbortSignal.any([done.signal, AbortSignal.timeout(LONGEST)]);
    await source.run({ others, ...(serviceCIDRs && { serviceCIDRs }) }, signal);
    // Who may not list these is answered all the same.
    missing.delete("serviceCIDRs");
    if (missing.size > 0)
      throw new RequestError(503, `${[...missing].join(", ")}: no complete answer in ${LONGEST / 1_000} s`);
  }

  /** @param state all services, with their EndpointSlices */
  decide(state: ClusterState): LearnedOnce {
    return this.#once.decide(state, this.#serviceCIDRs);
  }
}

/** @param onKnown what there is of the resource is known, or why it is not */
function overlaid(other: OtherSubscription, pasted: PastedObjects, onKnown: () => void): OtherSubscription {
  return {
    resource: other.resource,
    decode: other.decode,
    onChange: async (change) => {
      if (change.type !== "synced" && pasted.has(change.key)) return;
      await other.onChange(change);
      if (change.type === "synced") onKnown();
    },
    onState: (state) => {
      // With such an object there is such a resource.
      other.onState(state === "absent" && pasted.size > 0 ? "listed" : state);
      if (state !== "unreachable") onKnown();
    },
  };
}

function nameOf({ resource: { plural, group } }: OtherSubscription): string {
  return group === "" ? plural : `${plural}.${group}`;
}
