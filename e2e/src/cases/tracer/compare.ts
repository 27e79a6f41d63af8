import { socketText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Lab } from "@fairlead/lab/plain/lab";
import type { RuleSet } from "@fairlead/netfilter";
import { NODE_A, nodeEnvironment } from "@fairlead/testkit";
import { createTracer, type Environment, type Landing, landings, type Packet, type Rules } from "@fairlead/trace";
import type { SentPacket } from "./arbitrary-packets.ts";
import { LOOPBACK, ownAddresses, type SendOutcome, type Shipment, sendAll } from "./send.ts";

/** Below the ports that peers choose themselves, and above those that anybody listens on. */
const FIRST_PORT = 10_000;
const LAST_PORT = 32_999;

let nextPort = FIRST_PORT;

/** No two packets of a run are one connection. */
function unusedPort(): number {
  const port = nextPort;
  nextPort = port === LAST_PORT ? FIRST_PORT : port + 1;
  return port;
}

/** Node-a's side of a pod's link has this address, and no other. */
const GATEWAY = "169.254.1.1";

const environment: Environment = {
  ...nodeEnvironment,
  localAddresses: [...(nodeEnvironment.localAddresses ?? []), GATEWAY],
  redirectAddress: (name) => (name === "eth0" ? undefined : GATEWAY),
};

/** What the two said and did. */
export interface Comparison {
  /** A line for each packet of which the tracer says something else than happened. */
  readonly differences: readonly string[];
  readonly fates: readonly SendOutcome[];
}

/**
 * Sends packets through node-a, and through the tracer over what its kernel holds.
 *
 * @param rules as iptables-save and nft printed them
 */
export async function compare(
  lab: Lab,
  rules: RuleSet | Rules,
  packets: readonly SentPacket[],
  family: IPFamily,
): Promise<Comparison> {
  const tracer = createTracer(rules);
  const shipments = packets.map((packet) => {
    const sourcePort = unusedPort();
    const reported = landings(tracer.trace(tracePacket(packet, sourcePort), environment));
    return { ...packet, sourcePort, reported, answered: isAnswered(packet, reported) };
  });
  const fates = await sendAll(lab, shipments, family);
  const differences = shipments.flatMap((shipment, at) => {
    const fate = fates[at];
    return fate !== undefined && shipment.reported.some((landing) => isThat(landing, fate))
      ? []
      : [story(shipment, fate)];
  });
  return { differences, fates };
}

function tracePacket({ family, from, protocol, source, destination, port }: SentPacket, sport: number): Packet {
  const arrival = from.interface === undefined ? {} : { inInterface: from.interface };
  return { family, protocol: protocol === "TCP" ? "tcp" : "udp", source, destination, sport, dport: port, ...arrival };
}

/** Whether the sender is sure to hear of the packet: not where it may also be dropped. */
function isAnswered(packet: SentPacket, reported: readonly Landing[]): boolean {
  return reported.some((landing) => isHeardOf(packet, landing)) && reported.every(({ verdict }) => verdict !== "drop");
}

/**
 * A refusal, and what the node serves itself with: its connection tracking does not tell whether that came to its end.
 */
function isHeardOf({ from, family }: SentPacket, { verdict, destination }: Landing): boolean {
  if (verdict !== "accept" || from !== NODE_A) return verdict === "reject";
  return [...ownAddresses(family), ...LOOPBACK].some((address) =>
    destination.startsWith(socketText(address, 0).slice(0, -1)),
  );
}

function isThat({ verdict, destination, masqueraded }: Landing, fate: SendOutcome): boolean {
  if (fate.verdict !== "accept") return verdict === fate.verdict;
  return verdict === "accept" && destination === fate.destination && masqueraded === fate.masqueraded;
}

function story(shipment: Shipment & { readonly reported: readonly Landing[] }, fate: SendOutcome | undefined): string {
  const { from, protocol, source, destination, port, reported } = shipment;
  return `${protocol} ${from.name} ${source} → ${destination} ${port}: ${JSON.stringify(fate)}, told ${JSON.stringify(reported)}`;
}
