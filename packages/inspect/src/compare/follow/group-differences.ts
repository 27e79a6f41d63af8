import type { NodePlan, ServicePortGroup } from "@fairlead/core";
import { agrees, examine, type PacketFinding } from "../packets/agreement.ts";
import { packetText } from "../packets/packet-text.ts";
import type { Probe } from "../packets/probes.ts";
import type { View } from "../packets/view.ts";
import { type OutcomeShares, UNTOUCHED, waysText } from "../packets/ways.ts";
import { affinityDifference } from "./affinity.ts";
import type { Difference, DifferenceKind } from "./difference.ts";
import { exploredOnce } from "./explored-once.ts";
import { allProbesOf } from "./probes.ts";

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
