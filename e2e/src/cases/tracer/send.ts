import { setTimeout as sleep } from "node:timers/promises";
import { socketText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { type Connection, listConnections, type Runner } from "@fairlead/kernel";
import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import type { Lab } from "@fairlead/lab/plain/lab";
import { NODE_A, SECOND_NODE_ADDRESS } from "@fairlead/testkit";
import type { SentPacket } from "./arbitrary-packets.ts";

/** How long a refusal may take that is to come, and one that is not. */
const PATIENCE_MS = 60_000;
const SILENCE_MS = 300;
/** Well before an entry of UDP ends. */
const EARLY_MS = 2_000;

export interface Shipment extends SentPacket {
  readonly sourcePort: number;
  /** Whether the tracer says that the sender will hear of it: then it is worth waiting. */
  readonly answered: boolean;
}

/** What the kernel of node-a did with a packet. */
export type SendOutcome =
  | { readonly verdict: "reject" | "drop" }
  | { readonly verdict: "accept"; readonly destination: string; readonly masqueraded: boolean };

/**
 * Sends all packets at once. What was accepted stands in node-a's connection tracking, translation and masquerade
 * included; what was refused is known to the sender; the rest was dropped.
 */
export async function sendAll(
  lab: Lab,
  packets: readonly Shipment[],
  family: IPFamily,
): Promise<readonly SendOutcome[]> {
  const sent = packets.map((packet) => sendOne(lab, packet));
  const all = Promise.all(sent);
  const runner = lab.runner("node-a");
  // Most are answered at once. An entry of UDP lives for 30 s, and the last answer may take longer.
  await Promise.race([all, sleep(EARLY_MS)]);
  const early = await connectionsOf(runner, family);
  // What is tracked was accepted: chance may refuse the next try of its sender, half a minute later.
  const results = await Promise.all(packets.map((packet, at) => (isAccepted(packet, early) ? undefined : sent[at])));
  const connections = new Map([...early, ...(await connectionsOf(runner, family))]);
  return packets.map((packet, at) => {
    const connection = connections.get(flowKey(packet));
    return connection === undefined ? { verdict: stopped(results[at]) } : fateOf(packet, connection, results[at]);
  });
}

async function connectionsOf(runner: Runner, family: IPFamily): Promise<ReadonlyMap<string, Connection>> {
  const connections = new Map<string, Connection>();
  for (const protocol of ["TCP", "UDP"] as const) {
    for await (const connection of listConnections(runner, family, protocol)) {
      connections.set(flowKey({ protocol, ...connection.original }), connection);
    }
  }
  return connections;
}

async function sendOne(lab: Lab, packet: Shipment): Promise<ProbeResult | undefined> {
  const { from, protocol, source, sourcePort, destination: to, port, answered } = packet;
  const own = from === NODE_A ? {} : { source };
  const timeoutMs = answered ? PATIENCE_MS : SILENCE_MS;
  const [result] = await lab
    .peer(from)
    .send({ protocol, to, port, ...own, sourcePort, count: 1, parallel: 1, timeoutMs });
  return result;
}

/** Whether that is known without what the sender hears of it. */
function isAccepted(packet: Shipment, connections: ReadonlyMap<string, Connection>): boolean {
  const connection = connections.get(flowKey(packet));
  return connection !== undefined && !isLooped(packet, connection);
}

function flowKey({ protocol, source, sourcePort }: Pick<Shipment, "protocol" | "source" | "sourcePort">): string {
  return `${protocol} ${source} ${sourcePort}`;
}

function stopped(result: ProbeResult | undefined): "reject" | "drop" {
  if (result?.kind === "refused") return "reject";
  if (result?.kind === "lost") return "drop";
  throw new Error(`no connection, and yet: ${JSON.stringify(result)}`);
}

function fateOf(packet: Shipment, connection: Connection, result: ProbeResult | undefined): SendOutcome {
  const { family, source, sourcePort } = packet;
  const { reply } = connection;
  const own = ownAddresses(family);
  const masqueraded = reply.destination !== source || reply.destinationPort !== sourcePort;
  if (masqueraded && !own.includes(reply.destination)) throw new Error(`masqueraded as ${reply.destination}`);
  if (isLooped(packet, connection) && result?.kind !== "answer") return { verdict: stopped(result) };
  return { verdict: "accept", destination: socketText(reply.source, reply.sourcePort), masqueraded };
}

/** What the node sends to itself is a connection before INPUT is asked. */
function isLooped({ family, from }: Shipment, { reply }: Connection): boolean {
  return from === NODE_A && [...ownAddresses(family), ...LOOPBACK].includes(reply.source);
}

/** Where a REDIRECT of the node's own packets leads. */
export const LOOPBACK = ["127.0.0.1", "::1"];

export function ownAddresses(family: IPFamily): readonly string[] {
  return [NODE_A.addresses[family], SECOND_NODE_ADDRESS[family]];
}
