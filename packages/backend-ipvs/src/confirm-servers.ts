import { inSlices, type Slicing } from "@fairlead/base";
import { renderServerKey, type ServerConnections } from "@fairlead/netfilter";
import type { ObjectChanges } from "./plan/object-changes.ts";
import { destinationText } from "./plan/server-change.ts";
import type { WantedServer } from "./plan/servers.ts";
import type { ServersPort } from "./port.ts";

/**
 * Reads back the virtual servers of a change: a tool may say that it has written what it has not, and leave a new
 * service unserved.
 *
 * @throws Error that names a server which is not as it was written
 */
export async function confirmServers(port: ServersPort, { before, after }: ObjectChanges, slicing: Partial<Slicing>) {
  const missing = new Map(after);
  const all = new Map([...before, ...after]);
  for await (const found of port.connections(Array.from(all.values(), ({ server }) => server))) {
    const key = renderServerKey(found);
    const wanted = after.get(key);
    if (wanted === undefined) throw notWritten(key, "it still exists");
    await inSlices(destinations(key, wanted, found), slicing);
    missing.delete(key);
  }
  // Servers without a destination are not listed.
  for (const [key, { endpoints }] of missing) if (endpoints.length > 0) throw notWritten(key, "it does not exist");
}

/** Yields after each destination. */
function* destinations(key: string, wanted: WantedServer, found: ServerConnections): Generator<void, void> {
  const weights = new Map<string, number>();
  for (const one of found.destinations) {
    weights.set(destinationText(one), one.weight);
    yield;
  }
  for (const endpoint of wanted.endpoints) {
    const text = destinationText(endpoint);
    if (weights.get(text) !== 1) throw notWritten(key, `it lacks the destination ${text}`);
    yield;
  }
}

function notWritten(key: string, what: string): Error {
  return new Error(`virtual server ${key}: the write was reported as successful, but ${what}`);
}
