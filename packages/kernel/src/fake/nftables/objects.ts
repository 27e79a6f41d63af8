/** What messages do to chains, rules, sets, elements and flowtables. */

import {
  type Expression,
  elementKey,
  type Hex,
  lengthOf,
  type NftChain,
  type NftFlowtable,
  type NftRule,
  type NftSet,
  type SetElement,
} from "@fairlead/netfilter/nft";
import {
  chainOf,
  countElement,
  countExpressions,
  type FakeChain,
  type FakeElement,
  type FakeSet,
  type FakeTable,
  isThere,
  type MessageContext,
  type Refused,
  verdictOf,
} from "./state.ts";

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
  return undefined;
}

export function deleteRule(work: MessageContext, table: FakeTable, name: string, handle: bigint): Refused {
  const chain = table.chains.get(name);
  const rule = chain?.rules.find((one) => one.handle === handle);
  if (chain === undefined || rule === undefined) return "ENOENT";
  replaceRules(work, table, chain, [rule], (one) => one !== rule);
  return undefined;
}

type Facts = Omit<NftSet, "elements">;

export function addSet(work: MessageContext, table: FakeTable, facts: Facts): Refused {
  if (isTooLong(facts.name)) return "ERANGE";
  if (facts.timeout !== undefined && !facts.flags.includes("timeout")) return "EINVAL";
  const there = table.sets.get(facts.name);
  if (there === undefined) {
    work.journal.set(table.sets, facts.name, { facts, elements: new Map(), uses: 0 });
    return undefined;
  }
  if (kindOf(there.facts) !== kindOf(facts)) return "EEXIST";
  const { timeout: _, ...before } = there.facts;
  const { timeout, size } = facts;
  const now = { ...before, ...(timeout !== undefined && { timeout }), ...(size !== undefined && { size }) };
  work.journal.set(table.sets, facts.name, { ...there, facts: now });
  return undefined;
}

export function deleteSet(work: MessageContext, table: FakeTable, name: string): Refused {
  const set = table.sets.get(name);
  if (set === undefined) return "ENOENT";
  if (set.uses > 0) return "EBUSY";
  for (const { element } of set.elements.values()) countElement(work.journal, table, element, -1);
  work.journal.deleteInOrder(table.sets, name);
  return undefined;
}

export function flushSet(work: MessageContext, table: FakeTable, name: string): Refused {
  const set = table.sets.get(name);
  if (set === undefined) return "ENOENT";
  const before = set.elements;
  for (const { element } of before.values()) countElement(work.journal, table, element, -1);
  set.elements = new Map();
  work.journal.did(() => {
    set.elements = before;
  });
  return undefined;
}

export function deleteElements(work: MessageContext, table: FakeTable, name: string, keys: readonly Hex[]): Refused {
  const set = table.sets.get(name);
  if (set === undefined) return "ENOENT";
  for (const key of keys) {
    if (bytesOf(key) !== lengthOf(set.facts.key)) return "EINVAL";
    const there = set.elements.get(key);
    if (there === undefined || !isThere(there, work.now)) return "ENOENT";
    work.journal.delete(set.elements, key);
    countElement(work.journal, table, there.element, -1);
  }
  return undefined;
}

export function addElements(
  work: MessageContext,
  table: FakeTable,
  name: string,
  elements: readonly SetElement[],
): Refused {
  const set = table.sets.get(name);
  if (set === undefined) return "ENOENT";
  for (const element of elements) {
    const refused = checkElement(table, set.facts, element) ?? addElement(work, table, set, element);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** An element of a set with timeouts goes when its own time is over, or that of the set. */
export function timed({ timeout: ofSet = 0 }: Facts, added: SetElement, now: number): FakeElement {
  const { timeout, expires, ...element } = added;
  const lifetime = timeout ?? ofSet;
  if (lifetime === 0) return { element };
  const own = timeout !== undefined && timeout !== ofSet ? { timeout } : {};
  return { element: { ...element, ...own }, until: now + (expires || lifetime) };
}

/** Where the flowtable exists it gets the devices, and stays as it is otherwise (nft_flowtable_update). */
export function addFlowtable({ journal, devices }: MessageContext, table: FakeTable, added: NftFlowtable): Refused {
  if (isTooLong(added.name)) return "ERANGE";
  if (added.devices.some((device) => !devices.has(device))) return "ENOENT";
  const others = [...table.flowtables.values()].filter(({ name }) => name !== added.name);
  if (others.some((other) => added.devices.some((device) => other.devices.includes(device)))) return "EEXIST";
  const there = table.flowtables.get(added.name);
  const all = [...new Set([...(there?.devices ?? []), ...added.devices])];
  journal.set(table.flowtables, added.name, { ...(there ?? added), devices: all });
  return undefined;
}

export function deleteFlowtable({ journal }: MessageContext, table: FakeTable, name: string): Refused {
  if (!table.flowtables.has(name)) return "ENOENT";
  if (isUsed(table, name)) return "EBUSY";
  journal.deleteInOrder(table.flowtables, name);
  return undefined;
}

export function deleteDevices(
  { journal }: MessageContext,
  table: FakeTable,
  name: string,
  gone: readonly string[],
): Refused {
  const there = table.flowtables.get(name);
  if (there === undefined || gone.some((device) => !there.devices.includes(device))) return "ENOENT";
  const left = there.devices.filter((device) => !gone.includes(device));
  journal.set(table.flowtables, name, { ...there, devices: left });
  return undefined;
}

/** @param now its new name; empty: it is gone */
export function changeDevice(tables: Iterable<FakeTable>, device: string, now: readonly string[]): void {
  for (const { flowtables } of tables) {
    for (const [name, one] of flowtables) {
      const devices = one.devices.flatMap((other) => (other === device ? now : [other]));
      flowtables.set(name, { ...one, devices });
    }
  }
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

/** What has to be equal for a set to count as the same. */
function kindOf({ key, data, flags }: Facts): string {
  return JSON.stringify([key, data, [...flags].sort()]);
}

function checkElement(table: FakeTable, { key, data, flags }: Facts, element: SetElement): Refused {
  const { value, timeout, expires } = element;
  if ((timeout !== undefined || expires !== undefined) && !flags.includes("timeout")) return "EINVAL";
  if (bytesOf(element.key) !== lengthOf(key)) return "EINVAL";
  if (data === undefined || element.intervalEnd) return value === undefined ? undefined : "EINVAL";
  if (value === undefined || (typeof value === "string") !== (data !== "verdict")) return "EINVAL";
  if (typeof value === "string") return data !== "verdict" && bytesOf(value) === lengthOf(data) ? undefined : "EINVAL";
  return checkTarget(table, chainOf(value));
}

function addElement(work: MessageContext, table: FakeTable, set: FakeSet, added: SetElement): Refused {
  const key = elementKey(added);
  const there = set.elements.get(key);
  const lifetime = added.timeout ?? set.facts.timeout ?? 0;
  if (added.expires !== undefined && lifetime === 0) return "ENOTSUP";
  if ((added.expires ?? 0) > lifetime) return "ERANGE";
  if (there !== undefined && isThere(there, work.now)) return sameValue(there.element, added) ? undefined : "EEXIST";
  const { size } = set.facts;
  if (size !== undefined && set.elements.size >= size) return "ENFILE";
  work.journal.set(set.elements, key, timed(set.facts, added, work.now));
  countElement(work.journal, table, added, 1);
  return undefined;
}

function sameValue(one: SetElement, other: SetElement): boolean {
  return JSON.stringify(one.value) === JSON.stringify(other.value);
}

function bytesOf(hex: Hex): number {
  return hex.length / 2;
}

function isUsed({ chains }: FakeTable, flowtable: string): boolean {
  const rules = [...chains.values()].flatMap((chain) => chain.rules);
  return rules.some(({ expressions }) =>
    expressions.some((one) => one.kind === "flow-offload" && one.flowtable === flowtable),
  );
}

/** What the kernel refuses when it takes a rule in: what it refers to is not there, or not of that kind. */
function checkExpressions(table: FakeTable, expressions: readonly Expression[]): Refused {
  for (const expression of expressions) {
    const refused = checkExpression(table, expression);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

function checkExpression(table: FakeTable, expression: Expression): Refused {
  if (expression.kind === "lookup") return checkLookup(table, expression);
  if (expression.kind === "flow-offload") return table.flowtables.has(expression.flowtable) ? undefined : "ENOENT";
  if (expression.kind === "dynset") return checkDynset(table, expression);
  return checkTarget(table, chainOf(verdictOf(expression)));
}

/** Only what is no base chain can be jumped to. */
function checkTarget(table: FakeTable, name: string | undefined): Refused {
  if (name === undefined) return undefined;
  const chain = table.chains.get(name);
  if (chain === undefined) return "ENOENT";
  return chain.base === undefined ? undefined : "ENOTSUP";
}

function checkLookup(
  table: FakeTable,
  { set: name, to, inverted }: Extract<Expression, { readonly kind: "lookup" }>,
): Refused {
  const set = table.sets.get(name)?.facts;
  if (set === undefined) return "ENOENT";
  if (to === undefined) return set.data === undefined && set.objects === undefined ? undefined : "EINVAL";
  if (inverted || set.data === undefined) return "EINVAL";
  return (to === "verdict") === (set.data === "verdict") ? undefined : "EINVAL";
}

function checkDynset(
  table: FakeTable,
  { set: name, value, timeout }: Extract<Expression, { readonly kind: "dynset" }>,
): Refused {
  const set = table.sets.get(name)?.facts;
  if (set === undefined) return "ENOENT";
  if (!isHashTable(set)) return "ENOTSUP";
  if (set.flags.includes("constant")) return "EBUSY";
  if (timeout !== undefined && !set.flags.includes("timeout")) return "ENOTSUP";
  return (value !== undefined) === (set.data !== undefined) ? undefined : "EINVAL";
}

/** Of the kinds of sets only that one takes elements of packets; one of a fixed size is another kind. */
function isHashTable({ flags, size }: Omit<NftSet, "elements">): boolean {
  if (flags.includes("interval")) return false;
  return size === undefined || flags.includes("dynamic") || flags.includes("timeout");
}
