import { type Connection, listConnections, type Runner } from "@fairlead/kernel";
import type { Packet } from "@fairlead/trace";
import { collect } from "../../node/connections.ts";

/** What connection tracking knows of the packet's sender and destination. */
export interface TrackedPacket {
  /** The packet belongs to a connection that is known already, and goes where that was sent. */
  readonly packet: Packet;
  /** Other connections from there to there: where each of them leads. */
  readonly connections: readonly Connection[];
}

/** @param exact whether the packet's source port is the one meant; else it is a new connection's */
export async function knownOf(runner: Runner, packet: Packet, exact: boolean): Promise<TrackedPacket> {
  const { family, source, destination, sport, dport } = packet;
  const protocol = protocolOf(packet.protocol);
  if (protocol === undefined) return { packet, connections: [] };
  const found = (await connectionsFrom(runner, family, protocol, source)).filter(
    ({ original }) => original.destination === destination && original.destinationPort === dport,
  );
  const own = exact ? found.find(({ original }) => original.sourcePort === sport) : undefined;
  if (own === undefined) return { packet, connections: found };
  const { source: address, sourcePort: port } = own.reply;
  const translated = address === destination && port === dport ? {} : { dnat: { address, port } };
  return { packet: { ...packet, state: "ESTABLISHED", ...translated }, connections: found };
}

function protocolOf(name: string): "TCP" | "UDP" | "SCTP" | undefined {
  return (["TCP", "UDP", "SCTP"] as const).find((one) => one.toLowerCase() === name);
}

/** None where conntrack-tools are missing or not permitted. */
async function connectionsFrom(
  runner: Runner,
  family: Packet["family"],
  protocol: "TCP" | "UDP" | "SCTP",
  source: string,
) {
  try {
    return await collect(listConnections(runner, family, protocol, { source }));
  } catch {
    return [];
  }
}
