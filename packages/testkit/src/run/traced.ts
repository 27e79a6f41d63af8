import { socketText } from "@fairlead/base";
import type { RuleSet } from "@fairlead/netfilter";
import { createTracer, type Environment, type Outcome, type Packet, type Rules, type Tracer } from "@fairlead/trace";
import { hosts, NODE_A, SECOND_NODE_ADDRESS } from "../addresses/hosts.ts";
import { type CasePacket, type ConformanceCase, packetFamily } from "../conformance/case.ts";
import { mergedDiffers } from "./merged.ts";
import { type OutcomeShares, waysOf, wayTo } from "./ways.ts";

const localAddresses = [...Object.values(NODE_A.addresses), ...Object.values(SECOND_NODE_ADDRESS)];

/** Node-a as a packet meets it. */
export const nodeEnvironment: Environment = { localAddresses, outInterface };

/**
 * Where the tracer says that a case's packet ends.
 *
 * @throws Error where its merged ways say something else
 */
export function tracedWays(
  row: ConformanceCase,
  rules: RuleSet | Rules,
  environment: Environment = nodeEnvironment,
): OutcomeShares {
  const tracer = createTracer(rules);
  const packet = tracePacket(asSent(row.packet, environment));
  const outcomes = tracer.trace(packet, environment);
  const [differs] = mergedDiffers(tracer, packet, environment);
  if (differs !== undefined) throw new Error(`merged ways: ${differs}`);
  const ends = outcomes.map((outcome) => ({ way: wayOf(outcome), probability: outcome.probability }));
  const strays = row.sticky ? outcomes.flatMap((first) => strayWays(tracer, packet, environment, first)) : [];
  return waysOf([...ends, ...strays]);
}

/** What the node sends to an address of its own (kube-ipvs0 has the services') it sends from there. */
export function asSent(packet: CasePacket, { localAddresses = [] }: Environment): CasePacket {
  const { from, destination } = packet;
  return from === NODE_A && [...localAddresses].includes(destination) ? { ...packet, source: destination } : packet;
}

/** The packet as the tracer takes it: the first of a connection from port 40000. */
export function tracePacket(packet: CasePacket): Packet {
  const { from, source, destination, port, protocol } = packet;
  return {
    family: packetFamily(packet),
    protocol: protocol.toLowerCase(),
    source,
    destination,
    sport: 40_000,
    dport: port,
    ...(from.interface !== undefined && { inInterface: from.interface }),
  };
}

function wayOf({ verdict, table, translated, masqueraded, destination }: Outcome): string {
  if (verdict !== "accept") return table === "ipvs" ? "empty" : verdict;
  return wayTo(translated ? socketText(destination.address, destination.port ?? 0) : "leave", masqueraded);
}

/** Ways of the sender's next packet that are not the way of its first. */
function strayWays(tracer: Tracer, packet: Packet, environment: Environment, first: Outcome) {
  return tracer
    .trace(packet, afterwards(environment, first))
    .filter((next) => wayOf(next) !== wayOf(first))
    .map((next) => ({
      way: `${wayOf(next)} after ${wayOf(first)}`,
      probability: first.probability * next.probability,
    }));
}

/** What the kernel remembers of the packet. */
function afterwards(environment: Environment, { recentlySeen, template, remembered }: Outcome): Environment {
  const recent = new Map(recentlySeen.map(({ list, address }) => [list, new Map([[address, [1]]])]));
  const { ipvs } = environment;
  return {
    ...environment,
    recent,
    remembered,
    ...(ipvs !== undefined && template !== undefined && { ipvs: { ...ipvs, templates: [template] } }),
  };
}

function outInterface(destination: string): string {
  if (localAddresses.includes(destination) || destination === "::1" || destination.startsWith("127.")) return "lo";
  const host = hosts.find(({ addresses }) => Object.values(addresses).includes(destination));
  return host?.interface ?? "eth0";
}
