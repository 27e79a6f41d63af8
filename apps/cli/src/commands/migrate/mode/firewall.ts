import { socketText, toEnd } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import {
  type BlockedPackets,
  blockedPackets,
  dryTables,
  factsOf,
  type KernelState,
  type ModeChange,
  type ModeFinding,
  readersOf,
  waysText,
  withoutProxy,
} from "@fairlead/inspect";

/** How many rules, or kinds of packets, are written out. */
const NAMED = 3;

/**
 * What the rules of other programs on the node mean for the change: those that read the chains of the mode that goes,
 * and those that stop packets which its rules had let pass.
 *
 * @param kernel as it is now
 */
export function firewallFindings(
  { before, after }: ModeChange,
  family: IPFamily,
  kernel: KernelState,
): readonly ModeFinding[] {
  const readers = readersOf(kernel.ruleSet);
  const topic = `firewall, ${family}`;
  const found = readers.map(({ where, rule }) => `${where}: ${rule}`);
  const reading: readonly ModeFinding[] =
    readers.length === 0
      ? []
      : [
          {
            topic,
            state: "differs",
            found: `rules that lead to chains or sets of this mode match nothing then: ${listed(found)}`,
            advice: READERS,
          },
        ];
  if (factsOf(after.planned.mode).nftTables === undefined) return reading;
  const plan = after.planned.planner.plan(family);
  const others = withoutProxy(kernel);
  const own = toEnd(dryTables(plan, { mode: after.planned.mode, config: after.config }));
  const blocked = blockedPackets({
    groups: plan.groups.values(),
    node: plan.node,
    before: kernel,
    after: { ...others, nftables: [...(others.nftables ?? []), ...own] },
    nodeAddress: after.planned.options.nodeIPs[family],
    semantics: factsOf(before.planned.mode).semantics,
  });
  return [...reading, blocked.length === 0 ? { topic, state: "fits", found: PASSES } : stopped(topic, blocked)];
}

const PASSES = "the rules of other programs let pass what they let pass now";

const READERS = "let them match addresses and ports, or conntrack's original destination (-m conntrack --ctorigdst)";

function stopped(topic: string, blocked: readonly BlockedPackets[]): ModeFinding {
  const lines = blocked.map(({ service, finding: { source, frontend, found } }) => {
    const to = `${frontend.kind} ${socketText(frontend.address, frontend.port)} of ${service}`;
    return `${source.class} → ${to}: ${found === undefined ? "unknown" : waysText(found)}`;
  });
  return {
    topic,
    state: "differs",
    found: `rules of other programs stop packets that this mode's own rules accept: ${listed(lines)}`,
    advice: "accept traffic to and from pods, and to node ports, in the firewall before the change",
    services: [...new Set(blocked.map(({ service }) => service))].sort(),
  };
}

function listed(lines: readonly string[]): string {
  const more = lines.length > NAMED ? `; and ${lines.length - NAMED} more` : "";
  return `${lines.slice(0, NAMED).join("; ")}${more}`;
}
