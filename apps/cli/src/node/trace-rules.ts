import { IP_FAMILIES } from "@fairlead/base";
import { CommandError, type IPFamily, type Runner } from "@fairlead/kernel";
import { ownMark, type ProcessMark, stateOf } from "./process-mark.ts";

/** A rule in raw of nft's iptables that has packets traced, put there by a process of this tool. */
export interface TraceRule {
  readonly family: IPFamily;
  readonly chain: string;
  /** Matches, mark and target, as iptables takes them. */
  readonly rule: readonly string[];
  readonly owner: ProcessMark;
}

const TOOLS: Readonly<Record<IPFamily, string>> = { IPv4: "iptables-nft", IPv6: "ip6tables-nft" };

/** The rule names its process, so that what a killed one left is found and that of a running one stays. */
function commentOf({ pid, start, namespace, boot }: ProcessMark): string {
  return `fairlead-trace-${pid}-${start}-${namespace}-${boot}`;
}

/** As iptables -S prints such a rule: nothing in it has to be quoted. */
const PRINTED =
  /^-A (PREROUTING|OUTPUT) ((?:-\S+ \S+ )*-m comment --comment fairlead-trace-(\d+)-(\d+)-(\d+)-([\da-f-]{36}) -j TRACE)$/;

/** @param matches which packets are traced, as iptables takes it */
export function traceRule(family: IPFamily, chain: string, matches: readonly string[]): TraceRule {
  const owner = ownMark();
  const rule = [...matches, "-m", "comment", "--comment", commentOf(owner), "-j", "TRACE"];
  return { family, chain, rule, owner };
}

/** The command that puts the rule in front of all others, or takes it away. */
export function traceRuleCommand(command: "-I" | "-D", { family, chain, rule }: TraceRule): [string, ...string[]] {
  return [TOOLS[family], "-t", "raw", command, chain, ...rule];
}

/**
 * Takes away what this process has put into raw. It is looked for: an iptables that was killed may have written.
 *
 * @throws CommandError when rules cannot be listed or deleted
 */
export async function removeOwnTraceRules(runner: Runner, family: IPFamily): Promise<void> {
  const own = commentOf(ownMark());
  const found = await listTraceRules(runner, family);
  for (const rule of found) if (commentOf(rule.owner) === own) await remove(runner, rule);
}

/** What was found in raw of processes of this tool. */
export interface LeftTraceRules {
  /** Taken away: their processes are gone. */
  readonly removed: readonly TraceRule[];
  /** Left only: their processes run. */
  readonly running: readonly TraceRule[];
  /** Left only: whether their processes run cannot be seen from here. */
  readonly unknown: readonly TraceRule[];
}

/**
 * Takes away what killed processes of this tool left in raw. Undefined: the rules of no family can be listed.
 *
 * @throws CommandError when one cannot be deleted
 */
export async function removeLeftTraceRules(runner: Runner): Promise<LeftTraceRules | undefined> {
  const listed = await Promise.all(IP_FAMILIES.map((family) => listedOrNone(runner, family)));
  if (listed.every((rules) => rules === undefined)) return undefined;
  const rules = listed.flatMap((some) => some ?? []);
  const of = (state: ReturnType<typeof stateOf>) => rules.filter(({ owner }) => stateOf(owner) === state);
  const removed = of("gone");
  for (const rule of removed) await remove(runner, rule);
  return { removed, running: of("runs"), unknown: of("unknown") };
}

async function listedOrNone(runner: Runner, family: IPFamily): Promise<readonly TraceRule[] | undefined> {
  try {
    return await listTraceRules(runner, family);
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

async function listTraceRules(runner: Runner, family: IPFamily): Promise<readonly TraceRule[]> {
  const { stdout } = await runner.run([TOOLS[family], "-t", "raw", "-S"]);
  return stdout.split("\n").flatMap((line) => {
    const [, chain, rule, pid, start, namespace, boot = ""] = PRINTED.exec(line) ?? [];
    if (chain === undefined || rule === undefined) return [];
    const owner = { pid: Number(pid), start: Number(start), namespace: Number(namespace), boot };
    return [{ family, chain, rule: rule.split(" "), owner }];
  });
}

/** That another program took it away in the meantime is as good. */
async function remove(runner: Runner, rule: TraceRule): Promise<void> {
  try {
    await runner.run(traceRuleCommand("-D", rule));
  } catch (error) {
    const left = await listTraceRules(runner, rule.family);
    if (left.some((other) => commentOf(other.owner) === commentOf(rule.owner))) throw error;
  }
}
