import { type Hex, type NftSet, type NftTable, valueText } from "@fairlead/netfilter/nft";
import type { Pooled } from "./pooled.ts";

/** Digits of a number in a key or a value. */
const NUMBER = 8;
const FRONTENDS = ["sticky-ips", "sticky-nodeports"];
const PREFIXES = ["", "local-"];

/**
 * Where clients with affinity are led, by frontend: what they can draw, and what they can be remembered with, without
 * the numbers by which the table has it. A step is an element.
 */
export function* stickyEndpoints(table: NftTable): Generator<void, readonly Pooled[], void> {
  const found: Pooled[] = [];
  const ports = yield* endpointsByNumber(table);
  for (const name of FRONTENDS) {
    const set = table.sets.get(name);
    for (const { key, value } of set?.elements.values() ?? []) {
      yield;
      for (const { pool, byNumber } of ports) {
        const endpoints = byNumber.get(String(value).slice(NUMBER));
        if (set !== undefined && endpoints !== undefined)
          found.push({ pool, key, frontend: valueText(set.key, key), endpoints });
      }
    }
  }
  return found;
}

function* endpointsByNumber({ sets }: NftTable) {
  const pools: { readonly pool: string; readonly byNumber: ReadonlyMap<Hex, Set<string>> }[] = [];
  for (const prefix of PREFIXES) {
    const [members, slots] = [sets.get(`${prefix}sticky-endpoints`), sets.get(`${prefix}sticky-slots`)];
    const texts = new Map<Hex, string>();
    const remembered = new Map<Hex, Set<string>>();
    for (const { key, value } of members?.elements.values() ?? []) {
      yield;
      const text = elementText(members, value);
      texts.set(key.slice(0, 2 * NUMBER), text);
      add(remembered, key.slice(0, NUMBER), text);
    }
    const drawn = new Map<Hex, Set<string>>();
    for (const { key, value } of slots?.elements.values() ?? []) {
      yield;
      add(drawn, key.slice(0, NUMBER), texts.get(String(value).slice(NUMBER)) ?? "no endpoint");
    }
    pools.push(
      { pool: `${prefix}sticky-endpoints`, byNumber: remembered },
      { pool: `${prefix}sticky-slots`, byNumber: drawn },
    );
  }
  return pools;
}

function elementText(set: NftSet | undefined, value: unknown): string {
  const types = set?.data;
  return types === undefined || types === "verdict" || typeof value !== "string" ? "" : valueText(types, value);
}

function add(to: Map<Hex, Set<string>>, key: Hex, value: string): void {
  to.set(key, (to.get(key) ?? new Set()).add(value));
}
