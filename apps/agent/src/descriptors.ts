/** How many descriptors this process has, and what gets them. */

import { readFileSync } from "node:fs";

/** Descriptors that no client gets: those of tools that run at the same time, watches, files and Node itself. */
const RESERVE = 256;
/** HTTP clients at a time, which is enough for any node. */
const MOST_CLIENTS = 1_024;

/** How many sockets may be open for others, so that syncs always find a descriptor. */
interface DescriptorShares {
  /** Connections to all HTTP ports together. */
  readonly clients: number;
  /** Sockets of all relays of userspace mode together. */
  readonly relayed: number;
}

/** @param limit descriptors that this process may have open (RLIMIT_NOFILE) */
export function descriptorShares(limit: number): DescriptorShares {
  const free = limit - Math.min(RESERVE, Math.ceil(limit / 2));
  const clients = Math.min(MOST_CLIENTS, Math.floor(free / 4));
  return { clients, relayed: free - clients };
}

/** Sockets of relays, of all together and of one service port. */
interface RelayLimits {
  readonly maxSockets: number;
  readonly maxSocketsPerService: number;
}

/**
 * The configured limits, or as much as descriptors leave of them: a service port keeps its share of all, so that the
 * clients of one never hold what all others need.
 */
export function relayLimits(configured: RelayLimits, limit = descriptorLimit()): RelayLimits {
  const { maxSockets, maxSocketsPerService } = configured;
  const { relayed } = descriptorShares(limit);
  if (relayed >= maxSockets) return { maxSockets, maxSocketsPerService };
  const share = Math.floor((maxSocketsPerService * relayed) / maxSockets);
  return { maxSockets: relayed, maxSocketsPerService: Math.max(2, share) };
}

/** The limit of this process; Node has raised it to the hard one. Infinite where it cannot be read. */
export function descriptorLimit(file = "/proc/self/limits"): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync(file, "utf8")) ?? [];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
