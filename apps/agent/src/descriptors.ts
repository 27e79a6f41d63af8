/** How many descriptors this process has, and who gets them. */

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

/** The limit of this process; Node has raised it to the hard one. Infinite where it cannot be read. */
export function descriptorLimit(file = "/proc/self/limits"): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync(file, "utf8")) ?? [];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
