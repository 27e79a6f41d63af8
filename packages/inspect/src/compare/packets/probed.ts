import { bracketed } from "@fairlead/base";
import type { Packet } from "@fairlead/trace";
import type { Finding } from "../rules/finding.ts";
import { type Comparison, compared } from "./comparison.ts";
import { type Followed, follow } from "./followed.ts";
import type { Probe } from "./probes.ts";
import { type KernelState, viewOf } from "./view.ts";
import { tracedWays, waysText } from "./ways.ts";

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
