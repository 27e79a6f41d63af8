import { bracketed } from "@fairlead/base";
import {
  FRONTEND_KINDS,
  type Frontend,
  type ModeSemantics,
  type NodePlan,
  type ServicePortGroup,
  type Treatment,
} from "@fairlead/core";
import type { Packet } from "@fairlead/trace";
import { isExcluded, lets, type Probe, probesOf, type Source } from "./probes.ts";
import type { Finding } from "./rules.ts";
import {
  type Comparison,
  compared,
  type Followed,
  follow,
  type KernelState,
  type OutcomeShares,
  ownSource,
  sameWays,
  tracedWays,
  UNTOUCHED,
  type View,
  viewOf,
  wantedWays,
  waysText,
} from "./ways.ts";

/** Whether a kernel does with packets to services what a plan, or another kernel, wants. */

/** One kind of packet of a frontend, what the plan wants with it and what the kernel does. */
export interface PacketFinding {
  readonly frontend: Pick<Frontend, "kind" | "port"> & { readonly address: string };
  readonly source: Source;
  readonly wanted: OutcomeShares;
  /** Absent: it cannot be told, for the reason. */
  readonly found?: OutcomeShares;
  readonly problem?: string;
}

/** What was compared. */
export interface Agreement {
  /** Kinds of packets that were sent through the kernel's rules. */
  readonly checked: number;
  /** Those with which something else happens than the plan wants. */
  readonly disagreements: readonly PacketFinding[];
  /** Those of which it cannot be told. */
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
  const wanted = wantedWays(treatmentOf(probe.frontend, source), group, source.address);
  const followed = follow(view, { ...probe.packet, source: source.address });
  const refused = refusal(probe.frontend, source);
  const isRefused = refused !== undefined && compared(followed, refused).kind === "same";
  const finding = { frontend: { kind, address, port }, source, wanted: isRefused ? refused : wanted };
  const comparison = compared(followed, finding.wanted);
  if (comparison.kind === "unknown") return { ...finding, problem: comparison.problem };
  return { ...finding, found: comparison.kind === "different" ? comparison.ways : finding.wanted };
}

/**
 * Sends packets through what is expected and through what is there, and gives those that end elsewhere, or with another
 * probability. Where only rules outside a service proxy's chains masquerade, as pod networks do with what leaves them,
 * the finding says so. A step is a packet.
 */
export function* compareProbes(
  expected: KernelState,
  actual: KernelState,
  probes: Iterable<Pick<Probe, "service" | "packet">>,
): Generator<void, readonly Finding[], void> {
  const [wanted, found] = [viewOf(expected), viewOf(actual)];
  const findings: Finding[] = [];
  for (const { service, packet } of probes) {
    yield;
    const finding = findingOf(follow(wanted, packet), follow(found, packet));
    if (finding !== undefined) findings.push({ ...finding, service, where: `traffic ${packetText(packet)}` });
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
 * What is as good as being dropped, for who is not in the source ranges of an address that leads to no endpoint: he is
 * refused like every other client. kube-proxy's iptables mode asks for no ranges there, its nftables mode does.
 */
function refusal({ gate, treatments }: Frontend, source: Source): OutcomeShares | undefined {
  const { verdict } = treatments[source.class];
  const leadsOn = Object.values(treatments).some((one) => one.verdict === "proxy");
  return leadsOn || lets(gate, source.address) ? undefined : new Map([[verdict, 1]]);
}

function findingOf(want: Followed, have: Followed): Pick<Finding, "kind" | "what" | "others"> | undefined {
  if ("problem" in want) return { kind: "unknown", what: want.problem };
  const expected = tracedWays(want.outcomes);
  const comparison: Comparison = compared(have, expected);
  if (comparison.kind === "same") return undefined;
  if (comparison.kind === "unknown") return { kind: "unknown", what: comparison.problem };
  const what = `${waysText(comparison.ways)}, expected ${waysText(expected)}`;
  return { kind: "different", what, ...(comparison.kind === "masqueraded" && { others: true as const }) };
}

function packetText({ protocol, source, destination, dport }: Packet): string {
  const to = bracketed(destination);
  return `${protocol} ${source} → ${to}${dport === undefined ? "" : `:${dport}`}`;
}
