import type { NftChain, NftRule } from "@fairlead/netfilter/nft";
import { checkExpressions } from "./expressions.ts";
import type { FakeChain, FakeTable } from "./state.ts";
import { countExpressions } from "./uses.ts";
import type { MessageContext, Refused } from "./work.ts";

/** NFT_NAME_MAXLEN, without its zero byte. */
const LONGEST_NAME = 255;

export function isTooLong(name: string): boolean {
  return Buffer.byteLength(name) > LONGEST_NAME;
}

export function addChain(work: MessageContext, table: FakeTable, chain: Omit<NftChain, "rules">): Refused {
  if (isTooLong(chain.name)) return "ERANGE";
  const there = table.chains.get(chain.name);
  if (there === undefined) {
    work.journal.set(table.chains, chain.name, { ...chain, rules: [], uses: 0 });
    return undefined;
  }
  const { base } = chain;
  if (base === undefined) return undefined;
  if (there.base === undefined) return "ENOTSUP";
  const same = (["type", "hook", "priority"] as const).every((fact) => base[fact] === there.base?.[fact]);
  if (!same) return "ENOTSUP";
  work.journal.set(table.chains, chain.name, { ...there, base });
  return undefined;
}

export function deleteChain(work: MessageContext, table: FakeTable, name: string): Refused {
  const chain = table.chains.get(name);
  if (chain === undefined) return "ENOENT";
  // A jump from one of its own rules counts too.
  if (chain.uses > 0) return "EBUSY";
  flush(work, table, chain);
  work.journal.deleteInOrder(table.chains, name);
  return undefined;
}

export function flushChain(work: MessageContext, table: FakeTable, name: string): Refused {
  const chain = table.chains.get(name);
  if (chain === undefined) return "ENOENT";
  flush(work, table, chain);
  return undefined;
}

export function addRule(work: MessageContext, table: FakeTable, name: string, rule: NftRule): Refused {
  const chain = table.chains.get(name);
  if (chain === undefined) return "ENOENT";
  const refused = checkExpressions(table, rule.expressions);
  if (refused !== undefined) return refused;
  const { rules } = chain;
  rules.push({ ...rule, handle: work.nextHandle() });
  work.journal.did(() => rules.pop());
  countExpressions(work.journal, table, rule.expressions, 1);
  work.mustBeFollowed(table);
  return undefined;
}

export function deleteRule(work: MessageContext, table: FakeTable, name: string, handle: bigint): Refused {
  const chain = table.chains.get(name);
  const rule = chain?.rules.find((one) => one.handle === handle);
  if (chain === undefined || rule === undefined) return "ENOENT";
  replaceRules(work, table, chain, [rule], (one) => one !== rule);
  return undefined;
}

function flush(work: MessageContext, table: FakeTable, chain: FakeChain): void {
  replaceRules(work, table, chain, chain.rules, () => false);
}

function replaceRules(
  work: MessageContext,
  table: FakeTable,
  chain: FakeChain,
  gone: readonly NftRule[],
  stays: (rule: NftRule) => boolean,
): void {
  const before = chain.rules;
  chain.rules = before.filter(stays);
  work.journal.did(() => {
    chain.rules = before;
  });
  for (const { expressions } of gone) {
    countExpressions(work.journal, table, expressions, -1);
    deleteAnonymous(work, table, expressions);
  }
}

/** An anonymous set goes with its rule. */
function deleteAnonymous(work: MessageContext, table: FakeTable, expressions: NftRule["expressions"]): void {
  for (const expression of expressions) {
    if (expression.kind !== "lookup") continue;
    const set = table.sets.get(expression.set);
    if (set?.facts.flags.includes("anonymous")) work.journal.deleteInOrder(table.sets, expression.set);
  }
}
