import type { Frontend, NodePlan, ServicePortGroup } from "@fairlead/core";
import type { RuleSet } from "@fairlead/netfilter";
import { createTracer, type Environment, type Packet, type Tracer } from "@fairlead/trace";
import { lets, type Source, sourcesOf } from "./sources.ts";
import { sameWays, tracedWays, type Ways, wantedWays } from "./ways.ts";

/** What the kernel of a node holds, as far as packets to services meet it. */
export interface KernelState {
  readonly ruleSet: RuleSet;
  readonly environment: Environment;
}

/** One kind of packet of a frontend, what the plan wants with it and what the kernel does. */
export interface Finding {
  readonly frontend: Pick<Frontend, "kind" | "port"> & { readonly address: string };
  readonly source: Source;
  readonly wanted: Ways;
  /** Absent: it cannot be told, for the reason. */
  readonly found?: Ways;
  readonly problem?: string;
}

/** What was compared. */
export interface Agreement {
  /** Kinds of packets that were sent through the kernel's rules. */
  readonly checked: number;
  /** Those with which something else happens than the plan wants. */
  readonly disagreements: readonly Finding[];
}

/**
 * Sends a packet of every source class to every frontend of a group through what the kernel holds, and compares what
 * becomes of it with the plan. Rules are looked at by what they do: others' rules that do the same agree.
 *
 * @param nodeAddress where node ports are asked for, and the source of the node's own packets; absent: neither is
 */
export function agreementOf(
  groups: Iterable<ServicePortGroup>,
  node: NodePlan,
  kernel: KernelState,
  nodeAddress: string | undefined,
): Agreement {
  const tracer = createTracer(kernel.ruleSet);
  const findings = [...groups].flatMap((group) => {
    const sources = sourcesOf({ family: group.family, detector: node.detector, nodeAddress });
    return group.frontends.flatMap((frontend) => {
      const address = frontend.address ?? nodePortAddress(node, nodeAddress);
      if (address === undefined) return [];
      return sources.map((source) => examine(group, { ...frontend, address }, source, tracer, kernel.environment));
    });
  });
  const disagreements = findings.filter(({ found, wanted }) => found === undefined || !sameWays(found, wanted));
  return { checked: findings.length, disagreements };
}

/** Of a list those that are not loopback: from there only the node itself gets through. */
function nodePortAddress({ nodePortAddresses }: NodePlan, nodeAddress: string | undefined): string | undefined {
  if (nodePortAddresses.kind === "all") return nodeAddress;
  return nodePortAddresses.addresses.find((address) => !address.startsWith("127.") && address !== "::1");
}

type Addressed = Frontend & { readonly address: string };

function examine(
  group: ServicePortGroup,
  { kind, address, port, treatments, sources: allowed }: Addressed,
  source: Source,
  tracer: Tracer,
  environment: Environment,
): Finding {
  const sent = asSent(source, address, environment);
  const treatment = lets(allowed, sent.address) ? treatments[source.class] : ({ verdict: "drop" } as const);
  const wanted = wantedWays(treatment, group, sent.address);
  const finding = { frontend: { kind, address, port }, source: sent, wanted };
  try {
    return { ...finding, ...found(tracer, packetOf(group, address, port, sent), environment) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { ...finding, problem: error.message };
  }
}

/** Rules that nobody can decide here are taken both ways: where that leads to one end, they do not matter. */
function found(tracer: Tracer, packet: Packet, environment: Environment): Pick<Finding, "found" | "problem"> {
  const { outcomes, undecided } = tracer.explore(packet, environment);
  const [first] = undecided;
  return first === undefined ? { found: tracedWays(outcomes) } : { problem: first.problem.message };
}

/** What the node sends to an address that one of its own interfaces has, it sends from there. */
function asSent(source: Source, to: string, { localAddresses = [] }: Environment): Source {
  return source.class === "node" && [...localAddresses].includes(to) ? { ...source, address: to } : source;
}

function packetOf({ family, protocol }: ServicePortGroup, to: string, dport: number, source: Source): Packet {
  const { address, inInterface } = source;
  const packet = { family, protocol: protocol.toLowerCase(), source: address, destination: to, sport: 40_000, dport };
  return inInterface === undefined ? packet : { ...packet, inInterface };
}
