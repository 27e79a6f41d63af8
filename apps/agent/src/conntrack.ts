/** Cleans entries of connection tracking that a change left behind. */

import { type Clock, errorChainText } from "@fairlead/base";
import {
  type ConntrackFlow as Flow,
  type FrontendLookup,
  type GoneEndpoint,
  goneEndpoints,
  type IPFamily,
  orphans,
  type PlanChange,
  type Protocol,
  type ReleasedGroup,
  releasedFlows,
  staleFlows,
} from "@fairlead/core";
import { CommandError, type Conntrack, type ConntrackFlow } from "@fairlead/kernel";
import type { Log } from "./log.ts";
import type { ConntrackMetrics } from "./metrics/part-metrics.ts";
import type { SyncFollower } from "./sync/follower.ts";

/** Asked for by `--reset-stale-tcp`. */
interface Resets {
  /** Whether an address is another network's: it is not gone when it is no endpoint of ours anymore. */
  readonly isForeign: (address: string) => boolean;
}

interface ConntrackFollowerParts {
  readonly families: readonly IPFamily[];
  readonly conntrack: Conntrack;
  readonly lookup: (family: IPFamily) => FrontendLookup;
  /** The node's own addresses, as far as they are known now. Default: they are not. */
  readonly nodeAddresses?: () => readonly string[];
  /** Absent: TCP is left alone. */
  readonly resets?: Resets | undefined;
  readonly metrics: ConntrackMetrics;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Cleans conntrack after syncs that the kernel took, where UDP or SCTP was concerned, and where TCP is to be reset.
 * What cannot be cleaned is left to time out: rules are more important than that, so it never makes a sync fail.
 */
export function conntrackFollower(parts: ConntrackFollowerParts): SyncFollower {
  const queues = new Map(parts.families.map((family) => [family, new CleaningQueue(family, parts.resets)]));
  let unusable = false;

  async function clean(family: IPFamily, queue: CleaningQueue): Promise<void> {
    const needs = queue.take();
    if (needs === undefined || unusable) return;
    const start = parts.clock.monotonic();
    try {
      told(family, await cleanConntrack(parts.conntrack, parts.lookup(family), needs, parts.nodeAddresses?.()));
    } catch (error) {
      unusable = error instanceof CommandError && error.reason === "not-found";
      report(family, error);
    }
    parts.metrics.duration.observe({ ip_family: family }, (parts.clock.monotonic() - start) / 1000);
  }

  function told(family: IPFamily, deleted: ReadonlyMap<Protocol, number>): void {
    const entries = [...deleted.values()].reduce((sum, count) => sum + count, 0);
    parts.metrics.deleted.inc({ ip_family: family }, entries);
    parts.metrics.deletedTCP?.inc({ ip_family: family }, deleted.get("TCP") ?? 0);
    if (entries > 0) parts.log.verbose(2, "Deleted stale conntrack entries", { ipFamily: family, entries });
  }

  function report(family: IPFamily, error: unknown): void {
    const message = "Failed to delete stale conntrack entries; UDP clients stay on removed endpoints until they pause";
    const hint = unusable ? { hint: "install conntrack (apt-get install conntrack)" } : {};
    parts.log.warn(message, { ipFamily: family, error: errorChainText(error), ...hint });
  }

  return {
    planned({ released }) {
      for (const queue of queues.values()) queue.released(released);
    },
    async ran({ family, change, outcome }) {
      const queue = queues.get(family);
      queue?.changed(change);
      if (queue !== undefined && outcome.kind === "synced") await clean(family, queue);
    },
  };
}

/** What the next cleaning of a family has to look at. */
interface CleaningNeeds {
  readonly protocols: ReadonlySet<Protocol>;
  readonly released: readonly ReleasedGroup[];
  /** Whose TCP clients are to be reset. */
  readonly gone: readonly GoneEndpoint[];
}

/** An entry in core's words, with the one that it stands for. */
interface Listed extends Flow {
  readonly entry: ConntrackFlow;
}

/**
 * Deletes the conntrack entries of one family that keep clients on endpoints that are gone, or with us where another
 * network has taken over.
 *
 * @param nodeAddresses empty: they are not known
 * @returns how many were deleted of each protocol
 * @throws CommandError or NetlinkError when conntrack is missing, not permitted or fails
 */
export async function cleanConntrack(
  conntrack: Conntrack,
  lookup: FrontendLookup,
  needs: CleaningNeeds,
  nodeAddresses: readonly string[] = [],
): Promise<ReadonlyMap<Protocol, number>> {
  const isOrphan = orphans(lookup, needs.gone);
  const known = nodeAddresses.length === 0 ? {} : { nodeAddresses: new Set(nodeAddresses) };
  const choose = (entries: readonly ConntrackFlow[]): ReadonlySet<ConntrackFlow> => {
    const listed: readonly Listed[] = entries.map((entry) => ({
      ...entry,
      protocol: entry.protocol.toLowerCase(),
      entry,
    }));
    const released = releasedFlows(needs.released, listed);
    const stale = [...staleFlows(lookup, listed, known), ...released, ...listed.filter(isOrphan)];
    return new Set(stale.map(({ entry }) => entry));
  };
  const deleted = new Map<Protocol, number>();
  for (const protocol of needs.protocols) {
    deleted.set(protocol, await conntrack.sweep(lookup.family, protocol, choose));
  }
  return deleted;
}

/**
 * Protocols without connections of their own: their entries outlive a change of endpoints. UDP is upstream's, SCTP
 * ours.
 */
const CLEANED_PROTOCOLS: readonly Protocol[] = ["UDP", "SCTP"];

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
