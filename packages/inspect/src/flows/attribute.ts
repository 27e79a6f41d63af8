import { FRONTEND_KINDS } from "@fairlead/core";
import type { PlannedNode } from "../node-plan.ts";
import { endpointIndex } from "./endpoint-index.ts";
import type { Flow, FlowSocket } from "./flow.ts";
import { frontendIndex } from "./frontend-index.ts";
import type { Relays } from "./relays.ts";
import type { TrackedConnection } from "./tracked.ts";

/**
 * Says whose a connection is; undefined: no service's. Pure.
 *
 * @param relays absent: the node's agent relays nothing
 */
export type AttributeFlow = (connection: TrackedConnection, relays?: Relays) => Flow | undefined;

/**
 * Attributes connections to services, endpoints and owners, by the plan and the objects of a node. It costs as much as
 * the cluster has frontends once, and then the same for each connection.
 *
 * A connection is a service's if its client called one of the service's frontends. One to a node port that nothing
 * translated is the host's own, and so is one that a pod has with another by their own addresses: none of these is
 * given.
 *
 * @param nodeAddresses the node's own addresses, where node ports are served; absent: a port that is some service's
 * node port is taken for it at any address
 */
export function flowAttribution(
  planned: PlannedNode,
  nodeAddresses?: { has(address: string): boolean },
): AttributeFlow {
  const frontendAt = frontendIndex(planned, nodeAddresses);
  const endpointAt = endpointIndex(planned);
  return (connection, relays) => {
    const { family, protocol, original, reply } = connection;
    const { destination: address, destinationPort: number } = original;
    const called = frontendAt(protocol, address, number);
    if (called === undefined) return undefined;
    const { service, port, kind } = called;
    const owner = planned.planner.ownership(service, family)?.ownership;
    const translated = reply.source !== address || reply.sourcePort !== number;
    if (owner === undefined || (FRONTEND_KINDS[kind].at === "node-port" && !translated)) return undefined;
    const end = translated ? endOf(connection, relays) : undefined;
    return {
      family,
      protocol,
      client: { address: original.source, port: original.sourcePort },
      frontend: { kind, address, port: number },
      service,
      port: port.name,
      owner,
      ...(relays?.answers(connection) && { relayed: true }),
      ...(end && { endpoint: endpointAt(service, port, family, end.address, end.port) }),
      replied: connection.replied,
      ...optional(connection),
    };
  };
}

/** Who answers in the end; undefined: it is a relay, which has no endpoint for it yet, or no longer. */
function endOf(connection: TrackedConnection, relays: Relays | undefined): FlowSocket | undefined {
  const { source: address, sourcePort: port } = connection.reply;
  return relays?.answers(connection) ? relays.endpointOf(connection) : { address, port };
}

function optional({ state, offloaded, expires, sent, received }: TrackedConnection): Partial<Flow> {
  return {
    ...(state !== undefined && { state }),
    ...(offloaded && { offloaded }),
    ...(expires !== undefined && { expires }),
    ...(sent !== undefined && { sent }),
    ...(received !== undefined && { received }),
  };
}
