import type { NodePortAddresses, Planner, ServicePortGroup } from "@fairlead/core";
import type { Connection } from "@fairlead/kernel";

/** TCP's and SCTP's states of connections that are over, which the kernel remembers for a while. */
const OVER: ReadonlySet<string> = new Set(["TIME_WAIT", "CLOSE", "CLOSED"]);

/**
 * The service port whose frontend a client called; undefined: none that this proxy serves, nothing translated it here,
 * or it is over. Costs the same for each connection, however large the cluster is.
 */
export function groupCalled(
  planner: Pick<Planner, "lookup" | "plan">,
  { family, protocol, original, reply, state }: Connection,
): ServicePortGroup | undefined {
  const { destination: address, destinationPort: port } = original;
  const translated = reply.source !== address || reply.sourcePort !== port;
  if (!translated || (state !== undefined && OVER.has(state))) return undefined;
  const lookup = planner.lookup(family);
  const addressed = lookup.at(protocol, address, port);
  if (addressed !== undefined) return addressed;
  const behind = lookup.atNodePort(protocol, port);
  return behind && servedAt(planner.plan(family).node.nodePortAddresses, address) ? behind : undefined;
}

/** Of `all`, which are the node's own, being translated is enough: what another node serves is translated there. */
function servedAt(served: NodePortAddresses, address: string): boolean {
  return served.kind === "all" || served.addresses.includes(address);
}
