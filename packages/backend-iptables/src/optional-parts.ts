/** Matches that a kernel or its tools may lack: what asks for one is left out, and all else is served. */

import type { ForwardingPlan, PlanChange, ServicePortGroup } from "@fairlead/core";
import { payloadText, type Rule, restoreLines, shareProbability } from "@fairlead/netfilter";
import { CANARY } from "./plan/group-names.ts";
import type { OptionalPart } from "./plan/settings.ts";
import type { RulesPort } from "./port.ts";

interface Part {
  readonly name: OptionalPart;
  /** A rule with the match, in whatever table; undefined: nothing asks for it. */
  rule(counters: ReadonlySet<string>): Rule | undefined;
  /** What is not as it should be without it, for a log. */
  readonly consequence: string;
}

const PARTS: readonly Part[] = [
  {
    name: "nfacct",
    rule([counter]: Iterable<string>) {
      return counter === undefined ? undefined : { matches: [{ kind: "nfacct", name: counter }] };
    },
    consequence: "packet counters are disabled",
  },
  {
    name: "recent",
    rule: () => ({
      matches: [{ kind: "recent", name: CANARY, op: "rcheck", seconds: 1, reap: true, side: "rsource" }],
    }),
    consequence: "sessionAffinity ClientIP is ignored; the Services that ask for it are served without it",
  },
  {
    name: "statistic",
    rule: () => ({ matches: [{ kind: "statistic", mode: "random", probability: shareProbability(1, 2) }] }),
    consequence: "load is not spread; each Service sends all its packets to one endpoint",
  },
  {
    name: "sctp",
    rule: () => ({ protocol: { value: "sctp" }, matches: [{ kind: "sctp", dport: { from: 1, to: 1 } }] }),
    consequence: "SCTP ports of Services are not served",
  },
];

/** What each lacking match costs, in words for a log. */
export function consequencesOf(lacking: readonly OptionalPart[]): readonly string[] {
  const some = PARTS.filter(({ name }) => lacking.includes(name));
  return some.map(({ name, consequence }) => `iptables match ${name}: ${consequence}`);
}

/**
 * Asks the kernel for each optional match, with a rule in a chain of ours that nothing leads to. Only a restore that is
 * carried out asks it: `iptables-restore --test` asks only the tools.
 *
 * @returns those that it has not; none where it refuses everything
 */
export async function lackingParts(
  port: Pick<RulesPort, "restore">,
  counters: ReadonlySet<string>,
): Promise<ReadonlySet<OptionalPart>> {
  const rules = PARTS.flatMap(({ name, rule }) => {
    const asking = rule(counters);
    return asking === undefined ? [] : [{ name, asking }];
  });
  const all = rules.map(({ asking }) => asking);
  if ((await accepts(port, all)) || !(await accepts(port, []))) return new Set();
  const lacking = new Set<OptionalPart>();
  for (const { name, asking } of rules) if (!(await accepts(port, [asking]))) lacking.add(name);
  return lacking;
}

export function servedPlan(plan: ForwardingPlan, lacking: ReadonlySet<OptionalPart>): ForwardingPlan {
  if (!lacking.has("sctp")) return plan;
  const { family, node, healthChecks, foreignClusterIPs, endpointCount } = plan;
  const groups = new Map([...plan.groups].filter(([, group]) => isServed(group)));
  return { family, node, healthChecks, foreignClusterIPs, endpointCount, groups };
}

/** The change of the plan that `servedPlan` gives. */
export function servedChange(change: PlanChange, lacking: ReadonlySet<OptionalPart>): PlanChange {
  if (!lacking.has("sctp")) return change;
  const groups = [...change.groups].filter(([, { before, after }]) => isServed(after ?? before));
  return { ...change, groups: new Map(groups) };
}

function isServed(group: ServicePortGroup | undefined): boolean {
  return group?.protocol !== "SCTP";
}

/** Leaves the chain empty, as it always is. */
async function accepts(port: Pick<RulesPort, "restore">, rules: readonly Rule[]): Promise<boolean> {
  const fill = (some: readonly Rule[]) =>
    ({ table: "mangle", commands: [{ kind: "fill", chain: CANARY, rules: some, make: true }] }) as const;
  try {
    await port.restore(payloadText(restoreLines([fill(rules), fill([])]), async () => {}));
    return true;
  } catch {
    return false;
  }
}
