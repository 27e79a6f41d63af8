/** Tables as the fake kernel has them, with the counts of uses and a journal that takes changes back. */

import type {
  Expression,
  NftChain,
  NftFamily,
  NftFlowtable,
  NftRule,
  NftSet,
  NftTable,
  SetElement,
  Verdict,
} from "@fairlead/netfilter/nft";

export interface FakeChain extends Omit<NftChain, "rules"> {
  rules: NftRule[];
  /** Jumps and gotos that lead to it, of rules and of elements. */
  uses: number;
  packets?: number;
}

export interface FakeElement {
  readonly element: SetElement;
  /** When it goes, by the fake's clock; absent: never. */
  readonly until?: number;
}

export interface FakeSet {
  facts: Omit<NftSet, "elements">;
  /** By `elementKey`. */
  elements: Map<string, FakeElement>;
  /** Expressions of rules that look into it. */
  uses: number;
}

export interface FakeTable {
  readonly family: NftFamily;
  readonly name: string;
  readonly comment?: string;
  readonly chains: Map<string, FakeChain>;
  readonly sets: Map<string, FakeSet>;
  readonly flowtables: Map<string, NftFlowtable>;
}

export function emptyTable(family: NftFamily, name: string, comment?: string): FakeTable {
  return {
    family,
    name,
    ...(comment !== undefined && { comment }),
    chains: new Map(),
    sets: new Map(),
    flowtables: new Map(),
  };
}

export function isThere({ until }: FakeElement, now: number): boolean {
  return until === undefined || until > now;
}

export function listed(table: FakeTable, now: number): NftTable {
  const { family, name, comment, chains, sets, flowtables } = table;
  return {
    family,
    name,
    ...(comment !== undefined && { comment }),
    chains: new Map(
      [...chains].map(([key, { uses: _, packets: _packets, rules, ...chain }]) => [
        key,
        { ...chain, rules: [...rules] },
      ]),
    ),
    sets: new Map([...sets].map(([key, set]) => [key, listedSet(set, now)])),
    ...(flowtables.size > 0 && { flowtables: new Map(flowtables) }),
  };
}

export function listedSet({ facts, elements }: FakeSet, now: number): NftSet {
  const there = [...elements].filter(([, one]) => isThere(one, now));
  return { ...facts, elements: new Map(there.map(([key, one]) => [key, listedElement(one, now)])) };
}

/** With the time that is left. */
function listedElement({ element, until }: FakeElement, now: number): SetElement {
  return until === undefined ? element : { ...element, expires: Math.round(until - now) };
}

/** Name of the error with which the kernel refuses a message; undefined: it takes it. */
export type Refused = string | undefined;

export interface MessageContext {
  readonly tables: Map<string, FakeTable>;
  readonly journal: Journal;
  /** Names of the devices of this network namespace. */
  readonly devices: ReadonlySet<string>;
  /** By the fake's clock. */
  readonly now: number;
  nextHandle(): bigint;
}

export function tableKey(family: NftFamily, name: string): string {
  return `${family} ${name}`;
}

/** The chain to which an expression or an element leads. */
export function chainOf(verdict: Verdict | string | undefined): string | undefined {
  return typeof verdict === "object" && "chain" in verdict ? verdict.chain : undefined;
}

export function verdictOf(expression: Expression): Verdict | undefined {
  return expression.kind === "immediate" && "verdict" in expression ? expression.verdict : undefined;
}

/** Counts what expressions refer to, or counts it no more. */
export function countExpressions(
  journal: Journal,
  table: FakeTable,
  expressions: readonly Expression[],
  by: 1 | -1,
): void {
  for (const expression of expressions) {
    count(journal, table.chains.get(chainOf(verdictOf(expression)) ?? ""), by);
    const set = table.sets.get(setOf(expression) ?? "");
    count(journal, set, by);
    if (set !== undefined && expression.kind === "dynset") limit(journal, set);
  }
}

/** Counts the chain to which an element leads, or counts it no more. */
export function countElement(journal: Journal, table: FakeTable, { value }: SetElement, by: 1 | -1): void {
  count(journal, table.chains.get(chainOf(value) ?? ""), by);
}

/** What a transaction has changed so far, so that all of it can be taken back. */
export class Journal {
  readonly #undo: (() => void)[] = [];
  readonly #kept = new Set<unknown>();

  /** @param undo takes back the step that was just done */
  did(undo: () => void): void {
    this.#undo.push(undo);
  }

  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    map.set(key, value);
    this.did(() => (before === undefined ? map.delete(key) : map.set(key, before)));
  }

  /** From a map whose order is invisible. */
  delete<K, V>(map: Map<K, V>, key: K): void {
    const before = map.get(key);
    if (before === undefined) return;
    map.delete(key);
    this.did(() => map.set(key, before));
  }

  /** From a map that is listed in its order, which has to be the same again. */
  deleteInOrder<K, V>(map: Map<K, V>, key: K): void {
    if (!this.#kept.has(map)) {
      this.#kept.add(map);
      const entries = [...map];
      this.did(() => {
        map.clear();
        for (const [one, value] of entries) map.set(one, value);
      });
    }
    map.delete(key);
  }

  /** Takes back all, the last step first. */
  takeBack(): void {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) undo();
    this.#kept.clear();
  }
}

function setOf(expression: Expression): string | undefined {
  if (expression.kind === "objref") return "map" in expression ? expression.map : undefined;
  return expression.kind === "lookup" || expression.kind === "dynset" ? expression.set : undefined;
}

/** Most elements of a set that packets change, where none is given (nft_dynset_init). */
const LIMIT = 65_535;

function limit(journal: Journal, set: FakeSet): void {
  const before = set.facts;
  if (before.size !== undefined) return;
  set.facts = { ...before, size: LIMIT };
  journal.did(() => {
    set.facts = before;
  });
}

function count(journal: Journal, used: { uses: number } | undefined, by: 1 | -1): void {
  if (used === undefined) return;
  used.uses += by;
  journal.did(() => {
    used.uses -= by;
  });
}
