/** How packets to a service port differ from the plan, affinity included. */

import { socketText } from "@fairlead/base";
import type { IPFamily, NodePlan, ServicePortGroup } from "@fairlead/core";
import type { Environment, Exploration, Outcome, Packet, Tracer } from "@fairlead/trace";
import { agrees, examine, type PacketFinding } from "./agreement.ts";
import { allProbesOf, type Probe, packetText } from "./probes.ts";
import { type OutcomeShares, UNTOUCHED, type View, waysText } from "./ways.ts";

/**
 * What becomes of packets to one service port, against the plan. Rules are looked at by what they do: any mode's are
 * compared with a plan that was made with that mode's semantics.
 *
 * @param nodeAddress where node ports are asked for, and the source of the node's own packets; absent: neither is
 */
export function groupDifferences(
  group: ServicePortGroup,
  node: NodePlan,
  seen: View,
  nodeAddress: string | undefined,
): readonly Difference[] {
  const view = { ...seen, tracer: exploredOnce(seen.tracer, seen.environment) };
  const probes = [...allProbesOf(group, node, nodeAddress)];
  const differences = probes.flatMap((probe) => {
    const found = differenceOf(examine(group, probe, view), probe);
    return found === undefined ? [] : [found];
  });
  // What takes no packet, or sends it elsewhere, has no affinity either.
  return differences.length > 0 ? differences : affinityDifference(group, probes, view);
}

/**
 * How a packet fares otherwise than the plan wants. missing: nothing takes it. extra: something takes it that no
 * service wants. endpoints: it comes to others. shares: to the same ones, with other weights. masquerade: from another
 * source. verdict: it is rejected, dropped or let in where it is not to be. affinity: the client is not remembered, or
 * not as long. unknown: it is unknown what becomes of it.
 */
export const DIFFERENCE_KINDS = [
  "missing",
  "extra",
  "endpoints",
  "shares",
  "masquerade",
  "verdict",
  "affinity",
  "unknown",
] as const;

export type DifferenceKind = (typeof DIFFERENCE_KINDS)[number];

/** One kind of packet with which something else happens than the plan wants. */
export interface Difference {
  readonly kind: DifferenceKind;
  /** `tcp 198.51.100.7 → 10.96.0.80:80 (outside)` */
  readonly packet: string;
  /** Where the plan wants it to end: `10.144.1.5:8080 50 %, …`, `reject`, `drop`. */
  readonly wanted: string;
  /** Where it ends. */
  readonly found: string;
}

/** A service port, or a destination that no service has, and what is different about it. */
export interface DifferenceTarget {
  /** Unique in its family. */
  readonly id: string;
  readonly family: IPFamily;
  /** `namespace/name:port`, or `tcp 10.96.0.80:80`. */
  readonly name: string;
  /** Of the Service, absent where the cluster has none. */
  readonly service?: { readonly namespace: string; readonly name: string };
}

function differenceOf(finding: PacketFinding, probe: Probe): Difference | undefined {
  const { wanted, found, problem, source } = finding;
  // Another network serves it where Fairlead does; the proxy that is looked at serves every service.
  if (wanted.has(UNTOUCHED)) return undefined;
  if (agrees(finding, { letsNodeOut: true })) return undefined;
  return {
    kind: found === undefined ? "unknown" : kindOf(wanted, found),
    packet: packetText({ ...probe, source }),
    wanted: waysText(wanted),
    found: found === undefined ? `unknown: ${problem}` : waysText(found),
  };
}

/** The ways of packets that no endpoint gets. */
const VERDICTS = ["reject", "drop"];

function kindOf(wanted: OutcomeShares, found: OutcomeShares): DifferenceKind {
  if (VERDICTS.some((verdict) => wanted.has(verdict) || found.has(verdict))) return "verdict";
  if (found.has(UNTOUCHED)) return "missing";
  if (sameKeys([...wanted.keys()], [...found.keys()])) return "shares";
  return sameKeys(plain(wanted), plain(found)) ? "masquerade" : "endpoints";
}

function plain(ways: OutcomeShares): readonly string[] {
  return Array.from(ways.keys(), (way) => way.replace(/ masqueraded$/, ""));
}

function sameKeys(a: readonly string[], b: readonly string[]): boolean {
  const [one, other] = [new Set(a), new Set(b)];
  return one.size === other.size && [...one].every((key) => other.has(key));
}

/** Each endpoint that a client got costs a packet more. */
const MOST_FOLLOWED = 32;

/**
 * Whether clients come to the endpoint that they got before, where the plan wants that and only there; for how long, as
 * far as sets, lists and virtual servers say.
 */
function affinityDifference(
  { affinitySeconds }: ServicePortGroup,
  probes: readonly Probe[],
  view: View,
): readonly Difference[] {
  for (const probe of probes) {
    const outcomes = proxied(probe, view);
    if (outcomes.length > 0) return affinityDifferenceOf(affinitySeconds, outcomes, probe, view);
  }
  return [];
}

function affinityDifferenceOf(
  affinitySeconds: ServicePortGroup["affinitySeconds"],
  outcomes: readonly Outcome[],
  probe: Probe,
  view: View,
): readonly Difference[] {
  const wanted = affinitySeconds === undefined ? "each connection drawn anew" : `clients kept for ${affinitySeconds} s`;
  const found =
    affinitySeconds === undefined
      ? whyRemembered(outcomes)
      : whyForgotten(outcomes.slice(0, MOST_FOLLOWED), probe, view, affinitySeconds);
  if (found === undefined) return [];
  return [{ kind: "affinity", packet: packetText(probe), wanted, found }];
}

function proxied({ packet }: Probe, { tracer, environment }: View): readonly Outcome[] {
  return tracer
    .explore(packet, environment, { merged: true })
    .outcomes.filter(({ verdict, translated }) => verdict === "accept" && translated);
}

function whyRemembered(outcomes: readonly Outcome[]): string | undefined {
  const some = outcomes.find(
    ({ recentlySeen, remembered, template }) =>
      recentlySeen.length > 0 || remembered.length > 0 || template !== undefined,
  );
  return some && `clients kept at ${endText(some)}`;
}

function whyForgotten(
  outcomes: readonly Outcome[],
  probe: Probe,
  view: View,
  affinitySeconds: number,
): string | undefined {
  for (const first of outcomes) {
    const kept = secondsOf(first, view);
    if (kept !== undefined && kept !== affinitySeconds) return `clients kept for ${kept} s`;
    const inTime = endsAfter(first, probe, view, affinitySeconds - 1);
    if (inTime.some((end) => end !== endText(first))) return `clients of ${endText(first)} come to others as well`;
    const tooLate = first.recentlySeen.length > 0 ? endsAfter(first, probe, view, affinitySeconds + 1) : [];
    if (outcomes.length > 1 && tooLate.length === 1) return `clients kept for more than ${affinitySeconds} s`;
  }
  return undefined;
}

/** For how long the client of a first packet is kept, where the object that remembers it says so. */
function secondsOf({ remembered, virtualServer }: Outcome, { environment }: View): number | undefined {
  for (const { timeout } of remembered) if (timeout !== undefined) return timeout / 1000;
  if (virtualServer === undefined) return undefined;
  const { protocol, address, port } = virtualServer;
  for (const server of environment.ipvs?.servers ?? []) {
    if (server.protocol === protocol && server.address === address && server.port === port)
      return server.persistenceSeconds ?? 0;
  }
  return undefined;
}

/** Where a client may come `seconds` after its first packet. */
function endsAfter(first: Outcome, { packet }: Probe, { tracer, environment }: View, seconds: number) {
  const { outcomes } = tracer.explore(packet, afterwards(environment, first, seconds), { merged: true });
  return [...new Set(outcomes.map(endText))];
}

function afterwards(environment: Environment, first: Outcome, seconds: number): Environment {
  const { recentlySeen, template, remembered } = first;
  const { ipvs } = environment;
  return {
    ...environment,
    recent: new Map(recentlySeen.map(({ list, address }) => [list, new Map([[address, [seconds]]])])),
    remembered,
    ...(ipvs !== undefined && template !== undefined && { ipvs: { ...ipvs, templates: [template] } }),
  };
}

function endText({ verdict, destination: { address, port } }: Outcome): string {
  return verdict === "accept" ? socketText(address, port ?? 0) : verdict;
}

/** The same tracer, which follows equal packets once in this environment; for the few packets to one service. */
function exploredOnce(tracer: Tracer, environment: Environment): Tracer {
  const known = new Map<string, Exploration>();
  return {
    ...tracer,
    explore(packet, where, options) {
      if (where !== environment || options?.merged !== true) return tracer.explore(packet, where, options);
      const key = packetKey(packet);
      const exploration = known.get(key) ?? tracer.explore(packet, where, options);
      known.set(key, exploration);
      return exploration;
    },
  };
}

function packetKey(packet: Packet): string {
  return JSON.stringify(packet);
}
