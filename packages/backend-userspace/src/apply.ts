/** Applies a plan, and remembers what has been programmed. */

import type { ServicePortGroup, SyncReport } from "@fairlead/core";
import {
  type Command,
  type CommandSource,
  payloadText,
  type Rule,
  repairJumps,
  restoreLines,
  ruleKey,
  witnessed,
} from "@fairlead/netfilter";
import type { ResolvedOptions } from "./options.ts";
import { BUILTIN_CHAINS, CHAINS, type ChainRule, jumps, leadsToOwn, type RuleTable, TABLES } from "./plan/chains.ts";
import type { RenderContext } from "./plan/context.ts";
import { groupRules } from "./plan/group-rules.ts";
import type { RulesPort } from "./port.ts";
import type { Relays } from "./relay/relays.ts";

interface ChangeInput {
  readonly before: Programmed;
  readonly context: RenderContext;
  /** Groups as they are now, by id; undefined: gone. */
  readonly groups: ReadonlyMap<string, ServicePortGroup | undefined>;
}

const NOTHING: Written = { filter: 0, nat: 0 };

/**
 * Writes what differs; starts no process where that is nothing, as with most changes of endpoints. New refusals come
 * before nat changes, old ones go after it.
 */
export async function writeChange(
  port: RulesPort,
  { before, context, groups }: ChangeInput,
  options: ResolvedOptions,
): Promise<{ readonly rules: ReadonlyMap<string, readonly ChainRule[]>; readonly written: Written }> {
  const rules = new Map<string, readonly ChainRule[]>();
  const added: Record<RuleTable, Command[]> = { filter: [], nat: [] };
  const removed: Record<RuleTable, Command[]> = { filter: [], nat: [] };
  for (const [id, group] of groups) {
    const now = group === undefined ? [] : groupRules(group, before.relays.port, context);
    rules.set(id, now);
    const old = before.rules.get(id) ?? [];
    for (const table of TABLES) {
      for (const chain of CHAINS[table]) {
        const [was, is] = [inChain(old, table, chain), inChain(now, table, chain)];
        if (rulesText(was) === rulesText(is)) continue;
        const gone = was.filter((rule) => !hasSuccessor(rule, is));
        const replaced = was.filter((rule) => !gone.includes(rule));
        removed[table].push(...gone.map(remove));
        added[table].push(...replaced.map(remove), ...is.map(add));
      }
    }
  }
  if (JSON.stringify(jumps(before.context)) !== JSON.stringify(jumps(context))) {
    const builtins = await readBuiltins(port);
    for (const table of TABLES) added[table].push(...jumpCommands(table, context, builtins));
  }
  const sections: readonly CommandSource[] = [
    { table: "filter", commands: added.filter },
    { table: "nat", commands: [...removed.nat, ...added.nat] },
    { table: "filter", commands: removed.filter },
  ];
  if ([added.filter, added.nat, removed.filter, removed.nat].every(({ length }) => length === 0)) {
    return { rules, written: NOTHING };
  }
  await witnessed(port, () => port.restore(payloadText(restoreLines(sections), options.turn)));
  return { rules, written: { filter: added.filter.length, nat: added.nat.length } };
}

export interface Programmed {
  readonly context: RenderContext;
  readonly relays: Relays;
  readonly rules: Map<string, readonly ChainRule[]>;
}

/** Rules that one sync wrote, by table. */
export type Written = Readonly<Record<"filter" | "nat", number>>;

/** The rules of each chain of this mode, by `table chain`. */
export function rulesByChain({ rules }: Programmed): ReadonlyMap<string, readonly Rule[]> {
  const chains = new Map<string, Rule[]>();
  for (const group of rules.values()) {
    for (const { table, chain, rule } of group) {
      const held = chains.get(chainKey(table, chain)) ?? [];
      chains.set(chainKey(table, chain), held);
      held.push(rule);
    }
  }
  return chains;
}

export function chainKey(table: RuleTable, chain: string): string {
  return `${table} ${chain}`;
}

export function report(kind: SyncReport["kind"], programmed: Programmed, written: Written): SyncReport {
  const totals = { filter: 0, nat: 0 };
  for (const group of programmed.rules.values()) for (const { table } of group) totals[table] += 1;
  return {
    kind,
    objects: {
      filter: { total: totals.filter, written: written.filter },
      nat: { total: totals.nat, written: written.nat },
    },
  };
}

/**
 * Whether another rule decides about the same packets. The two change places at once: a refusal that stayed until nat's
 * change is written would keep its verdict from its successor, where one drops and the other rejects.
 */
function hasSuccessor(old: ChainRule, now: readonly ChainRule[]): boolean {
  const packets = packetsOf(old);
  return now.some((rule) => packetsOf(rule) === packets);
}

function packetsOf({ rule: { target: _verdict, matches, ...rest } }: ChainRule): string {
  return ruleKey({ ...rest, matches: matches.filter(({ kind }) => kind !== "comment") });
}

function remove({ chain, rule }: ChainRule): Command {
  return { kind: "delete", chain, rule };
}

function inChain(rules: readonly ChainRule[], table: RuleTable, chain: string): readonly ChainRule[] {
  return rules.filter((rule) => rule.table === table && rule.chain === chain);
}

function rulesText(rules: readonly ChainRule[]): string {
  return rules.map(({ rule }) => ruleKey(rule)).join("\n");
}

export type Builtins = ReadonlyMap<string, readonly Rule[]>;

/** What makes the built-in chains of a table lead to ours. */
export function* jumpCommands(table: RuleTable, context: RenderContext, builtins: Builtins): Generator<Command> {
  const isUnwanted = (rule: Rule) => leadsToOwn(rule, table);
  for (const { table: of, chain, first, last } of jumps(context)) {
    if (of === table) yield* repairJumps(chain, { first, last, isUnwanted }, builtins.get(`${table} ${chain}`) ?? []);
  }
}

export async function readBuiltins(port: RulesPort): Promise<Builtins> {
  const builtins = new Map<string, readonly Rule[]>();
  for (const table of TABLES) {
    for (const chain of BUILTIN_CHAINS[table]) {
      builtins.set(`${table} ${chain}`, (await port.list(table, chain)) ?? []);
    }
  }
  return builtins;
}

export function add({ chain, rule, first }: ChainRule): Command {
  return first ? { kind: "insert", chain, position: 1, rule } : { kind: "append", chain, rule };
}
