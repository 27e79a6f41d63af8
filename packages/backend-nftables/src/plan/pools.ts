import type { EndpointSetName } from "@fairlead/core";
import { type NftChain, type NftSet, statements } from "@fairlead/netfilter/nft";
import { moduliOf } from "./classes.ts";
import type { PlanContext } from "./context.ts";
import { addressType, type EmptySet } from "./key-types.ts";
import { markForMasquerading } from "./masquerade.ts";

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

export function keyTypes({ fields }: PoolKind, family: PlanContext["family"]): NftSet["key"] {
  const types = {
    daddr: addressType(family),
    saddr: addressType(family),
    l4proto: "inet_proto",
    dport: "inet_service",
  } as const;
  return fields.map((field) => types[field]);
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
