/** Pools: maps of endpoints that Services of one class share, and their changes. */

import type { EndpointSetName } from "@fairlead/core";
import { type Hex, type NftChain, type NftSet, type SetElement, statements } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { addressType, type EmptySet, endpointValue, slotKey } from "./keys.ts";
import { markForMasquerading } from "./masquerade.ts";
import { moduliOf, type Pool, sameEndpoint } from "./placement.ts";

/** Endpoints stand under the frontend that leads to them: by its address, or by the node port. */
export interface PoolKind {
  readonly prefix: "" | "local-" | "nodeport-" | "nodeport-local-";
  readonly set: EndpointSetName;
  readonly fields: readonly statements.Field[];
}

const ADDRESS = ["daddr", "l4proto", "dport"] as const;
const NODE_PORT = ["l4proto", "dport"] as const;

/** Alongside the set that most clients reach, a frontend of policy Local has a second one under the same key. */
export const POOL_KINDS = {
  address: {
    cluster: { prefix: "", set: "cluster", fields: ADDRESS },
    local: { prefix: "local-", set: "local", fields: ADDRESS },
  },
  nodePort: {
    cluster: { prefix: "nodeport-", set: "cluster", fields: NODE_PORT },
    local: { prefix: "nodeport-local-", set: "local", fields: NODE_PORT },
  },
} as const satisfies Record<string, Record<"cluster" | "local", PoolKind>>;

/** What all services of one class have in common, made when the first one needs it. */
export interface Structure {
  readonly sets: readonly EmptySet[];
  readonly chains: readonly NftChain[];
}

export interface Need {
  /** Equal for equal structures. */
  readonly id: string;
  readonly make: (context: PlanContext) => Structure;
}

/** The chain that leads to the endpoints of a pool, and what has to be there for it. */
export interface PoolChain {
  readonly chain: string;
  readonly needs: readonly Need[];
}

/** The map of a class, and its chain: both have this name. */
export function poolName({ prefix }: PoolKind, size: number): string {
  return `${prefix}endpoints-${size}`;
}

export function poolNeed(kind: PoolKind, size: number): Need {
  return { id: poolName(kind, size), make: (context) => poolStructure(kind, size, context) };
}

export function keyTypes({ fields }: PoolKind, family: PlanContext["family"]): NftSet["key"] {
  const types = {
    daddr: addressType(family),
    saddr: addressType(family),
    l4proto: "inet_proto",
    dport: "inet_service",
  } as const;
  return fields.map((field) => types[field]);
}

/** A class's chain for frontends whose clients are all masqueraded. */
export function externalNeed(chain: string): Need {
  const name = `external-${chain}`;
  return {
    id: name,
    make: (context) => ({
      sets: [],
      chains: [
        {
          name,
          rules: [
            { expressions: markForMasquerading(context), comment: "masquerade" },
            { expressions: statements.goTo(chain) },
          ],
        },
      ],
    }),
  };
}

/** Takes elements that go and elements that come. */
export interface ElementChanges {
  /** All elements go that a set of intervals had before. */
  clear(set: string): void;
  delete(set: string, key: Hex): void;
  add(set: string, element: SetElement): void;
}

export const STEP = 1024;

/** The elements by which a pool under a key differs from what it was; only these are made. A step for many slots. */
export function* poolChanges(
  before: PoolUse | undefined,
  after: PoolUse | undefined,
  to: ElementChanges,
): Generator<void> {
  const use = after ?? before;
  if (use === undefined) return;
  const { kind, key } = use;
  const inClass = (pool: Pool | undefined) => ({
    slots: pool?.weights === undefined ? (pool?.slots ?? []) : [],
    map: pool && poolMapName(kind, pool),
    key: (slot: number) => key + slotKey(slot),
  });
  yield* slotChanges(inClass(before?.pool), inClass(after?.pool), to);
}

function poolStructure(kind: PoolKind, size: number, { family }: PlanContext): Structure {
  const name = poolName(kind, size);
  const key = keyTypes(kind, family);
  const data = [addressType(family), "inet_service"] as const;
  const rules = moduliOf(size).map((modulus) => ({ expressions: drawAndTranslate(kind, name, modulus, family) }));
  return {
    sets: [{ name, key: [...key, "integer"], data, flags: [] }],
    chains: [{ name, rules }],
  };
}

/** `dnat to ip daddr . meta l4proto . th dport . numgen random mod 4 map @endpoints-4` */
function drawAndTranslate(kind: PoolKind, map: string, modulus: number, family: PlanContext["family"]) {
  const { expressions, next } = statements.loadKey(family, kind.fields);
  return [...expressions, { kind: "numgen", modulus, to: next } as const, ...translateBy(map, family)];
}

/** Looks the endpoint up by what was loaded, and translates to it; where there is none, the rule ends. */
export function translateBy(map: string, family: PlanContext["family"]) {
  return [
    { kind: "lookup", set: map, from: 0, to: 0 },
    { kind: "nat", family, address: 0, port: family === "ip" ? 1 : 4 },
  ] as const;
}

export function poolMapName(kind: PoolKind, { size, hashed }: Pool): string {
  return hashed ? hashedName(kind, size) : poolName(kind, size);
}

interface InClass {
  readonly slots: Pool["slots"];
  readonly map: string | undefined;
  key(slot: number): Hex;
}

function* slotChanges(before: InClass, after: InClass, to: ElementChanges): Generator<void> {
  const sameMap = before.map === after.map;
  if (sameMap && before.slots === after.slots) return;
  for (let slot = 0; slot < Math.max(before.slots.length, after.slots.length); slot++) {
    if (slot % STEP === STEP - 1) yield;
    const [was, is] = [before.slots[slot], after.slots[slot]];
    if (sameMap && sameEndpoint(was, is)) continue;
    if (was !== undefined && before.map !== undefined) to.delete(before.map, before.key(slot));
    if (is !== undefined && after.map !== undefined)
      to.add(after.map, { key: after.key(slot), value: endpointValue(is) });
  }
}

/** The same on every node, so that a client keeps its endpoint whichever node it comes through. */
const SEED = 0x666c6561;

/** The map of tables of a size, and its chain: both have this name. */
function hashedName({ prefix }: PoolKind, size: number): string {
  return `${prefix}hashed-${size}`;
}

/** Services whose clients go by a hash of their address: the slot is computed, and every slot has an endpoint. */
export function hashedNeed(kind: PoolKind, size: number): Need {
  return { id: hashedName(kind, size), make: (context) => hashedStructure(kind, size, context) };
}

/** `dnat to ip daddr . meta l4proto . th dport . jhash ip saddr mod 1021 seed … map @hashed-1021` */
function hashedStructure(kind: PoolKind, size: number, { family }: PlanContext): Structure {
  const name = hashedName(kind, size);
  const { expressions: frontend, next } = statements.loadKey(family, kind.fields);
  // Behind the key and its slot, where an address may begin.
  const client = Math.ceil((next + 1) / 4) * 4;
  const rule = [
    ...frontend,
    statements.load(family, "saddr", client),
    { kind: "hash", from: client, length: family === "ip" ? 4 : 16, modulus: size, seed: SEED, to: next } as const,
    ...translateBy(name, family),
  ];
  return {
    sets: [
      { name, key: [...keyTypes(kind, family), "integer"], data: [addressType(family), "inet_service"], flags: [] },
    ],
    chains: [{ name, rules: [{ expressions: rule }] }],
  };
}

/** The endpoints of a pool, as they stand under a frontend's key. */
export interface PoolUse {
  readonly kind: PoolKind;
  readonly key: Hex;
  readonly pool: Pool;
}
