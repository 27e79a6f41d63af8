/** Whether a kernel does with packets to services what a plan, or another kernel, wants. */

import { bracketed } from "@fairlead/base";
import {
  FRONTEND_KINDS,
  type Frontend,
  type ModeSemantics,
  type NodePlan,
  type ServicePortGroup,
  type Treatment,
} from "@fairlead/core";
import { endpointProbesOf, isExcluded, lets, type Probe, probesOf, type Source } from "./probes.ts";
import type { Finding } from "./rules.ts";
import {
  compared,
  follow,
  type KernelState,
  type OutcomeShares,
  ownSource,
  sameWays,
  UNTOUCHED,
  type View,
  viewOf,
  wantedWays,
  waysText,
} from "./ways.ts";

/** One kind of packet of a frontend, what the plan wants with it and what the kernel does. */
export interface PacketFinding {
  readonly frontend: Pick<Frontend, "kind" | "port"> & { readonly address: string };
  readonly source: Source;
  readonly wanted: OutcomeShares;
  /** Absent: it is unknown, for the reason. */
  readonly found?: OutcomeShares;
  /** What is found where other programs masquerade it as well, which is no disagreement. */
  readonly masqueraded?: OutcomeShares;
  readonly problem?: string;
}

/** What was compared. */
export interface Agreement {
  /** Kinds of packets that were sent through the kernel's rules. */
  readonly checked: number;
  /** Those with which something else happens than the plan wants. */
  readonly disagreements: readonly PacketFinding[];
  /** Those of which it is unknown. */
  readonly unknown: readonly PacketFinding[];
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
  const view = viewOf(kernel);
  const findings = [...groups].flatMap((group) =>
    Array.from(probesOf(group, node, nodeAddress), (probe) => examine(group, probe, view)),
  );
  const [unknown, known] = [findings.filter(isUnknown), findings.filter((one) => !isUnknown(one))];
  const disagreements = known.filter((one) => !agrees(one, semantics));
  return { checked: findings.length, disagreements, unknown };
}

/** Whether the kernel does what the plan wants, as far as the mode's rules ever do. */
export function agrees(finding: PacketFinding, { letsNodeOut }: Pick<ModeSemantics, "letsNodeOut">): boolean {
  const { found, wanted } = finding;
  return found !== undefined && (sameWays(found, wanted) || (letsNodeOut === true && isLetOut(finding, found)));
}

/** What becomes of one packet of a group, and what the plan wants with it. */
export function examine(group: ServicePortGroup, probe: Probe, view: View): PacketFinding {
  const { kind, address, port } = probe.frontend;
  const source = asSent(probe.source, address, view);
  const delivered = (to: string) => source.inInterface !== undefined && view.own.has(to);
  const wanted = wantedWays(treatmentOf(probe.frontend, source), group, source.address, delivered, probe.frontend);
  const followed = follow(view, { ...probe.packet, source: source.address });
  const refused = refusal(probe.frontend, source);
  const isRefused = refused !== undefined && compared(followed, refused).kind === "same";
  const finding = { frontend: { kind, address, port }, source, wanted: isRefused ? refused : wanted };
  const comparison = compared(followed, finding.wanted);
  if (comparison.kind === "unknown") return { ...finding, problem: comparison.problem };
  if (comparison.kind === "different") return { ...finding, found: comparison.ways };
  return {
    ...finding,
    found: finding.wanted,
    ...(comparison.kind === "masqueraded" && { masqueraded: comparison.ways }),
  };
}

/**
 * The same with packets from the endpoints too, as findings. Where only rules outside a service proxy's chains
 * masquerade, as pod networks do with what leaves them, the finding says so. A step is a packet.
 */
export function* trafficFindings(
  groups: Iterable<ServicePortGroup>,
  node: NodePlan,
  kernel: KernelState,
  nodeAddress: string | undefined,
  semantics: Pick<ModeSemantics, "letsNodeOut">,
): Generator<void, readonly Finding[], void> {
  const view = viewOf(kernel);
  const findings: Finding[] = [];
  for (const group of groups) {
    const probes = [...probesOf(group, node, nodeAddress), ...endpointProbesOf(group, node, nodeAddress, view.own)];
    for (const probe of probes) {
      yield;
      const found = differenceOf(examine(group, probe, view), semantics);
      if (found !== undefined) findings.push({ ...found, service: group.name, where: `traffic ${packetText(probe)}` });
    }
  }
  return findings;
}

function isUnknown({ found }: PacketFinding): boolean {
  return found === undefined;
}

/** What the node itself sends to an external address without endpoints leaves it. */
function isLetOut({ frontend, source, wanted }: PacketFinding, found: OutcomeShares): boolean {
  const { reach, at } = FRONTEND_KINDS[frontend.kind];
  const external = reach === "external" && at === "address";
  return external && source.class === "node" && wanted.has("reject") && found.has(UNTOUCHED);
}

function asSent(source: Source, to: string, { environment }: View): Source {
  return source.class === "node" ? { ...source, address: ownSource(source.address, to, environment) } : source;
}

function treatmentOf(frontend: Frontend, source: Source): Treatment {
  if (isExcluded(frontend, source)) return { verdict: "leave" };
  return lets(frontend.gate, source.address) ? frontend.treatments[source.class] : { verdict: "drop" };
}

/**
 * What is as good as being dropped, for clients outside of the source ranges of an address that leads to no endpoint:
 * they are refused like every other client. kube-proxy's iptables mode asks for no ranges there, nftables mode does.
 */
function refusal({ gate, treatments }: Frontend, source: Source): OutcomeShares | undefined {
  const { verdict } = treatments[source.class];
  const leadsOn = Object.values(treatments).some((one) => one.verdict === "proxy");
  return leadsOn || lets(gate, source.address) ? undefined : new Map([[verdict, 1]]);
}

/** @returns undefined: the plan is met */
function differenceOf(
  finding: PacketFinding,
  semantics: Pick<ModeSemantics, "letsNodeOut">,
): Pick<Finding, "kind" | "what" | "others"> | undefined {
  const { wanted, found, masqueraded, problem = "" } = finding;
  if (found === undefined) return { kind: "unknown", what: problem };
  if (masqueraded === undefined && agrees(finding, semantics)) return undefined;
  const what = `${waysText(masqueraded ?? found)}, expected ${waysText(wanted)}`;
  return { kind: "different", what, ...(masqueraded && { others: true }) };
}

function packetText({ packet: { protocol, source, destination, dport } }: Probe): string {
  return `${protocol} ${source} → ${bracketed(destination)}${dport === undefined ? "" : `:${dport}`}`;
}
