import type { VirtualServerState } from "@fairlead/netfilter";
import type { Host } from "./host.ts";
import type { Share } from "./virtual-servers.ts";
import { side, type Walk } from "./walk.ts";

/** What ip_vs answers where a server has nowhere to send to (ip_vs_leave). */
export const UNREACHABLE = { IPv4: "icmp-port-unreachable", IPv6: "icmp6-port-unreachable" } as const;

/**
 * What ip_vs makes of a packet (ip_vs_in): the first of a connection to a virtual server gets a destination; all else
 * goes on as it is, and so does what it has sent on before.
 *
 * @param onFork called with the other ways that the packet may take
 * @returns false when the server has no destination that takes new connections: the sender is told so
 * @throws RangeError for a packet of a connection that is known already: its owner is not in the environment
 */
export function serve(walk: Walk, host: Host, onFork: (other: Walk) => void): boolean {
  if (walk.server !== undefined) return true;
  const { servers } = host;
  const server = servers.find(walk.protocol, walk.destination.address, walk.destination.port);
  if (server === undefined) return true;
  walk.server = server;
  if (walk.state !== "NEW") throw new RangeError("the tracer knows only new connections to virtual servers");
  const [first, ...others] = servers.shares(server, walk.source.address);
  if (first === undefined) return false;
  for (const other of others) {
    const copy = { ...walk };
    take(copy, server, other, host);
    onFork(copy);
  }
  take(walk, server, first, host);
  return true;
}

/** Translates to the destination. What is not for this host begins anew as its own packet (ip_vs_nat_send_or_cont). */
function take(walk: Walk, server: VirtualServerState, { destination, share }: Share, host: Host): void {
  const { address, port } = destination;
  if (server.persistenceSeconds !== undefined) {
    walk.template = { server, client: walk.source.address, destination: { address, port } };
  }
  walk.destination = side(address, port);
  walk.translated = true;
  walk.probability *= share;
  if (!host.servers.tracked) walk.state = "UNTRACKED";
  walk.sentOn = !host.isLocal(walk.destination.words);
}
