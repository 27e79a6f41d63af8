import { inSlices, type Slicing } from "@fairlead/base";
import { renderServerKey, type ServerCommand, type VirtualServerState } from "@fairlead/netfilter";
import { collect } from "./collect.ts";
import type { Draining } from "./draining.ts";
import type { Owned } from "./ownership.ts";
import { newServer, serverChange } from "./plan/server-change.ts";
import type { WantedServer } from "./plan/servers.ts";

/** How the kernel's virtual servers differ from those wanted. */
export interface ServerDifference {
  /** Servers that are not there at all. */
  readonly missing: ReadonlyMap<string, WantedServer>;
  readonly additions: readonly ServerCommand[];
  readonly removals: readonly ServerCommand[];
}

/**
 * Compares as the listing is read; servers that are as they should be are not kept. Notes what drains, in the kernel or
 * by the removals.
 */
export async function compareServers(
  listing: AsyncIterable<VirtualServerState> | Iterable<VirtualServerState>,
  wanted: ReadonlyMap<string, WantedServer>,
  owned: Owned,
  draining: Draining,
  slicing: Partial<Slicing>,
): Promise<ServerDifference> {
  const missing = new Map(wanted);
  const additions: ServerCommand[] = [];
  const removals: ServerCommand[] = [];
  for await (const present of listing) {
    const key = renderServerKey(present);
    const server = wanted.get(key);
    if (server !== undefined) {
      const change = await inSlices(serverChange(server, present), slicing);
      missing.delete(key);
      await inSlices(collect(change.additions, additions), slicing);
      await inSlices(collect(change.removals, removals), slicing);
      draining.set(server.server, change.draining);
    } else if (owned(present)) {
      removals.push({ kind: "delete-server", server: present });
    }
  }
  return { missing, additions, removals };
}

/** All that has to be done about a difference, what comes before what goes. */
export function* differenceCommands({ missing, additions, removals }: ServerDifference): Generator<ServerCommand> {
  for (const server of missing.values()) yield* newServer(server);
  yield* additions;
  yield* removals;
}

export function isEqual({ missing, additions, removals }: ServerDifference): boolean {
  return missing.size + additions.length + removals.length === 0;
}
