/** Cleans entries of connection tracking that a change left behind, and sets its limits and time-outs. */

import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { type Clock, errorChainText } from "@fairlead/base";
import type { ConntrackSettings } from "@fairlead/config";
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
import { CommandError, type Conntrack, type ConntrackFlow, type Sysctl } from "@fairlead/kernel";
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
  /** Absent: TCP entries stay. */
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
      reportDeleted(
        family,
        await cleanConntrack(parts.conntrack, parts.lookup(family), needs, parts.nodeAddresses?.()),
      );
    } catch (error) {
      unusable = error instanceof CommandError && error.reason === "not-found";
      reportFailure(family, error);
    }
    parts.metrics.duration.observe({ ip_family: family }, (parts.clock.monotonic() - start) / 1000);
  }

  function reportDeleted(family: IPFamily, deleted: ReadonlyMap<Protocol, number>): void {
    const entries = [...deleted.values()].reduce((sum, count) => sum + count, 0);
    parts.metrics.deleted.inc({ ip_family: family }, entries);
    parts.metrics.deletedTCP?.inc({ ip_family: family }, deleted.get("TCP") ?? 0);
    if (entries > 0) parts.log.verbose(2, "Deleted stale conntrack entries", { ipFamily: family, entries });
  }

  function reportFailure(family: IPFamily, error: unknown): void {
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

  /** @param resets absent: TCP entries stay */
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

export interface ConntrackMachine {
  /** Cores of the node: connections are counted for all of it, whatever this process may use. */
  readonly cores: number;
  /** The number of buckets that entries are kept in, as the module's parameter. */
  readonly hashSizeFile: string;
}

const thisMachine = (): ConntrackMachine => ({
  cores: cpus().length,
  hashSizeFile: "/sys/module/nf_conntrack/parameters/hashsize",
});

/**
 * Sets the limits and time-outs of connection tracking where they are others than the configuration's. What cannot be
 * set, as in a container whose /proc/sys is read-only, stays as it is: one warning names it.
 */
export async function prepareConntrack(
  settings: ConntrackSettings,
  sysctl: Sysctl,
  log: Log,
  machine: ConntrackMachine = thisMachine(),
): Promise<void> {
  const refused: string[] = [];
  for (const { key, value } of conntrackSysctls(settings, machine.cores)) {
    if (key === MAX && Number((await sysctl.read(key)) ?? 0) >= value) continue;
    const result = await sysctl.set(key, value);
    const name = key.replaceAll("/", ".");
    if (result.outcome === "changed") log.info("Set a sysctl", { name, value, before: result.before });
    else if (result.outcome !== "kept") refused.push(`${name}=${value}: ${result.reason}`);
  }
  const entries = maximum(settings, machine.cores);
  if (entries > 0 && refused.length === 0) {
    const problem = await raiseHashSize(machine.hashSizeFile, Math.trunc(entries / 4));
    if (problem !== undefined) refused.push(problem);
  }
  if (refused.length > 0)
    log.warn("Failed to set some conntrack sysctls; the node's values stay in effect", { refused: refused.join("; ") });
}

/** Raised, never lowered: an administrator may want more (upstream: pkg/proxy/conntrack/sysctls.go, since v1.37.2). */
const MAX = "net/netfilter/nf_conntrack_max";

/** One sysctl below net/netfilter, as kube-proxy wants it. */
interface ConntrackSysctl {
  readonly key: string;
  readonly value: number;
}

/** The sysctls that a configuration asks for; what is 0 in it is left as the kernel has it. */
export function conntrackSysctls(settings: ConntrackSettings, cores: number): readonly ConntrackSysctl[] {
  const seconds = (milliseconds: number) => Math.trunc(milliseconds / 1000);
  const wanted: readonly (readonly [name: string, value: number])[] = [
    ["max", maximum(settings, cores)],
    ["tcp_timeout_established", seconds(settings.tcpEstablishedTimeoutMs)],
    ["tcp_timeout_close_wait", seconds(settings.tcpCloseWaitTimeoutMs)],
    ["tcp_be_liberal", settings.tcpBeLiberal ? 1 : 0],
    ["udp_timeout", seconds(settings.udpTimeoutMs)],
    ["udp_timeout_stream", seconds(settings.udpStreamTimeoutMs)],
  ];
  return wanted
    .filter(([, value]) => value > 0)
    .map(([name, value]) => ({ key: `net/netfilter/nf_conntrack_${name}`, value }));
}

/** Four entries a bucket, as the kernel has it by itself. Returns what was in the way. */
async function raiseHashSize(file: string, size: number): Promise<string | undefined> {
  try {
    if (Number(await readFile(file, "utf8")) < size) await writeFile(file, String(size));
    return undefined;
  } catch (error) {
    return `${file}=${size}: ${errorChainText(error)}`;
  }
}

/** More would cost too much memory on nodes with many cores, as upstream says. */
const MOST_ENTRIES = 1_048_576;

/** Entries that the node may track; 0: as it is. */
function maximum({ maxPerCore, min }: ConntrackSettings, cores: number): number {
  if (maxPerCore === 0) return 0;
  const scaled = maxPerCore * cores;
  return scaled > MOST_ENTRIES ? MOST_ENTRIES : Math.max(scaled, min);
}
