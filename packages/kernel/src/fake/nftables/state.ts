import type { NftChain, NftFamily, NftFlowtable, NftRule, NftSet, NftTable, SetElement } from "@fairlead/netfilter/nft";

export interface FakeChain extends Omit<NftChain, "rules"> {
  rules: NftRule[];
  /** Jumps and gotos that lead to it, of rules and of elements. */
  uses: number;
  /** What its rules have counted. */
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

/** What is there at that time. */
export function isThere({ until }: FakeElement, now: number): boolean {
  return until === undefined || until > now;
}

/** A table as the kernel lists it. */
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

/** With the elements that are there at that time. */
export function listedSet({ facts, elements }: FakeSet, now: number): NftSet {
  const there = [...elements].filter(([, one]) => isThere(one, now));
  return { ...facts, elements: new Map(there.map(([key, one]) => [key, listedElement(one, now)])) };
}

/** With the time that is left. */
export function listedElement({ element, until }: FakeElement, now: number): SetElement {
  return until === undefined ? element : { ...element, expires: Math.round(until - now) };
}
