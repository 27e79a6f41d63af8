import { statements } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { addressType } from "./key-types.ts";
import { keyTypes, type Need, type PoolKind, type Structure, translateBy } from "./pools.ts";

/** The same on every node, so that a client keeps its endpoint whichever node it comes through. */
const SEED = 0x666c6561;

/** The map of tables of a size, and its chain: both have this name. */
export function hashedName({ prefix }: PoolKind, size: number): string {
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
