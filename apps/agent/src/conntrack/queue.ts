import {
  type GoneEndpoint,
  goneEndpoints,
  type IPFamily,
  type PlanChange,
  type Protocol,
  type ReleasedGroup,
} from "@fairlead/core";

/**
 * Protocols without connections of their own: their entries outlive a change of endpoints. UDP is upstream's, SCTP
 * ours.
 */
const CLEANED_PROTOCOLS: readonly Protocol[] = ["UDP", "SCTP"];

/** What the next cleaning of a family has to look at. */
export interface CleaningNeeds {
  readonly protocols: ReadonlySet<Protocol>;
  readonly released: readonly ReleasedGroup[];
  /** Whose TCP clients are to be reset. */
  readonly gone: readonly GoneEndpoint[];
}

/** Asked for by `--reset-stale-tcp`. */
export interface Resets {
  /** Whether an address is another network's: it is not gone when it is no endpoint of ours anymore. */
  readonly isForeign: (address: string) => boolean;
}

/** Gathers, over syncs that may fail, what makes conntrack entries of one family stale. */
export class CleaningQueue {
  readonly #family: IPFamily;
  /** A first sync changes every group, so it looks for whatever the process before it left of protocols that serve. */
  #protocols = new Set<Protocol>();
  #released: ReleasedGroup[] = [];
  #gone: GoneEndpoint[] = [];
  readonly #resets: Resets | undefined;

  /** @param resets absent: TCP is left alone */
  constructor(family: IPFamily, resets?: Resets) {
    this.#family = family;
    this.#resets = resets;
  }

  changed(change: PlanChange | undefined): void {
    for (const { before, after } of change?.groups.values() ?? []) {
      const protocol = (after ?? before)?.protocol;
      if (protocol !== undefined && CLEANED_PROTOCOLS.includes(protocol)) this.#protocols.add(protocol);
    }
    if (change !== undefined && this.#resets !== undefined) this.#lose(change, this.#resets);
  }

  #lose(change: PlanChange, { isForeign }: Resets): void {
    for (const endpoint of goneEndpoints(change)) if (!isForeign(endpoint.address)) this.#gone.push(endpoint);
    if (this.#gone.length > 0) this.#protocols.add("TCP");
  }

  /** Another network has taken over these frontends. */
  released(groups: readonly ReleasedGroup[]): void {
    for (const group of groups) {
      if (group.family !== this.#family || !CLEANED_PROTOCOLS.includes(group.protocol)) continue;
      this.#released.push(group);
      this.#protocols.add(group.protocol);
    }
  }

  /** What is to be done now; undefined: nothing. It is forgotten. */
  take(): CleaningNeeds | undefined {
    if (this.#protocols.size === 0) return undefined;
    const needs = { protocols: this.#protocols, released: this.#released, gone: this.#gone };
    this.#protocols = new Set();
    this.#released = [];
    this.#gone = [];
    return needs;
  }
}
