import type { Frontend, ModeSemantics, NodePlan, ServicePortGroup, Treatment } from "@fairlead/core";
import type { RuleSet } from "@fairlead/netfilter";
import type { NftTable } from "@fairlead/netfilter/nft";
import {
  createTracer,
  type Environment,
  type Exploration,
  type Rules,
  type Tracer,
  withoutOthersMasquerade,
} from "@fairlead/trace";
import { type Probe, probesOf } from "./probes.ts";
import { isExcluded, lets, type Source } from "./sources.ts";
import { sameWays, tracedWays, UNTOUCHED, type Ways, wantedWays } from "./ways.ts";

/** What the kernel of a node holds, as far as packets to services meet it. */
export interface KernelState {
  readonly ruleSet: RuleSet;
  /** Beside those of iptables; absent: none. */
  readonly nftables?: readonly NftTable[];
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
 * becomes of it with the plan. Rules are looked at by what they do: others' rules that do the same agree, and so does a
 * pod network that masquerades on top.
 *
 * @param nodeAddress where node ports are asked for, and the source of the node's own packets; absent: neither is
 * @param semantics of the plan's mode
 */
export function agreementOf(
  groups: Iterable<ServicePortGroup>,
  node: NodePlan,
  kernel: KernelState,
  nodeAddress: string | undefined,
  semantics: Pick<ModeSemantics, "letsNodeOut">,
): Agreement {
  const tracer = createTracer(rulesOf(kernel));
  const findings = [...groups].flatMap((group) =>
    Array.from(probesOf(group, node, nodeAddress), (probe) => examine(group, probe, tracer, kernel.environment)),
  );
  return { checked: findings.length, disagreements: findings.filter((one) => !agrees(one, semantics)) };
}

/** Whether the kernel does what the plan wants, as far as the mode's rules ever do. */
export function agrees(finding: Finding, { letsNodeOut }: Pick<ModeSemantics, "letsNodeOut">): boolean {
  const { found, wanted } = finding;
  return found !== undefined && (sameWays(found, wanted) || (letsNodeOut === true && isLetOut(finding, found)));
}

/** What the node itself sends to an external address without endpoints leaves it. */
function isLetOut({ frontend, source, wanted }: Finding, found: Ways): boolean {
  const external = frontend.kind === "external-ip" || frontend.kind === "load-balancer";
  return external && source.class === "node" && wanted.has("reject") && found.has(UNTOUCHED);
}

/** All rules of a kernel, as the tracer takes them. */
export function rulesOf({ ruleSet, nftables = [] }: KernelState): Rules {
  return { iptables: ruleSet, nftables };
}

/** What becomes of one packet of a group, and what the plan wants with it. */
export function examine(group: ServicePortGroup, probe: Probe, tracer: Tracer, environment: Environment): Finding {
  const { kind, address, port } = probe.frontend;
  const source = asSent(probe.source, address, environment);
  const wanted = wantedWays(treatmentOf(probe.frontend, source), group, source.address);
  const finding = { frontend: { kind, address, port }, source, wanted };
  try {
    const packet = { ...probe.packet, source: source.address };
    const seen = found(tracer.explore(packet, environment, { merged: true }), wanted);
    const refused = refusal(probe.frontend, source);
    return { ...finding, ...seen, ...(refused && seen.found && sameWays(seen.found, refused) && { wanted: refused }) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { ...finding, problem: error.message };
  }
}

function treatmentOf(frontend: Frontend, source: Source): Treatment {
  if (isExcluded(frontend, source)) return { verdict: "leave" };
  return lets(frontend.sources, source.address) ? frontend.treatments[source.class] : { verdict: "drop" };
}

/**
 * What is as good as being dropped, for who is not in the source ranges of an address that leads to no endpoint: he is
 * refused like everybody else. kube-proxy's iptables mode asks for no ranges there, its nftables mode does.
 */
function refusal({ sources, treatments }: Frontend, source: Source): Ways | undefined {
  const { verdict } = treatments[source.class];
  const leadsOn = Object.values(treatments).some((one) => one.verdict === "proxy");
  return leadsOn || lets(sources, source.address) ? undefined : new Map([[verdict, 1]]);
}

/** Rules that nobody can decide here are taken both ways: where that leads to one end, they do not matter. */
function found({ outcomes, undecided }: Exploration, wanted: Ways): Pick<Finding, "found" | "problem"> {
  const [first] = undecided;
  if (first !== undefined) return { problem: first.problem.message };
  const byProxy = tracedWays(withoutOthersMasquerade(outcomes));
  return { found: sameWays(byProxy, wanted) ? byProxy : tracedWays(outcomes) };
}

/** What the node sends to an address that one of its own interfaces has, it sends from there. */
function asSent(source: Source, to: string, { localAddresses = [] }: Environment): Source {
  return source.class === "node" && [...localAddresses].includes(to) ? { ...source, address: to } : source;
}
