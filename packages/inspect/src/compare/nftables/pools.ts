import { lengthOf, type NftSet, type NftTable, valueText } from "@fairlead/netfilter/nft";
import { poolOf } from "./classes.ts";
import type { Pooled } from "./pooled.ts";
import { stickyEndpoints } from "./sticky.ts";

const POOL = /^(.*endpoints)-(\d+)$/;

/**
 * The endpoints of each frontend in each pool, by pool and key; those of a class that nothing leads to don't count. A
 * step is an element.
 */
export function* pooledEndpoints(table: NftTable): Generator<void, ReadonlyMap<string, Pooled>, void> {
  const led = yield* sizesLedTo(table);
  const found = new Map<string, Pooled>();
  for (const set of table.sets.values()) {
    const [, pool, size] = POOL.exec(set.name) ?? [];
    if (pool === undefined || size === undefined || set.data === undefined || set.data === "verdict") continue;
    const frontend = frontendIn(set);
    for (const { key: whole, value } of set.elements.values()) {
      yield;
      const key = whole.slice(0, frontend.digits);
      const id = `${pool} ${key}`;
      if (typeof value !== "string" || (frontend.hasSlot && led.get(id)?.has(size) !== true)) continue;
      const known = found.get(id) ?? { pool, key, frontend: valueText(frontend.types, key), endpoints: new Set() };
      known.endpoints.add(valueText(set.data, value));
      found.set(id, known);
    }
  }
  for (const sticky of yield* stickyEndpoints(table)) found.set(`${sticky.pool} ${sticky.key}`, sticky);
  return found;
}

/** The parts of the key before the slot, which is there in maps that are drawn from. */
function frontendIn({ key }: NftSet) {
  const hasSlot = key.at(-1) === "integer";
  const types = hasSlot ? key.slice(0, -1) : key;
  return { hasSlot, types, digits: 2 * lengthOf(types) };
}

/** Which sizes of a pool elements of verdict maps lead to, by pool and key. */
function* sizesLedTo({ sets }: NftTable): Generator<void, ReadonlyMap<string, ReadonlySet<string>>, void> {
  const led = new Map<string, Set<string>>();
  for (const { elements } of sets.values()) {
    for (const { key, value } of elements.values()) {
      yield;
      const to = typeof value === "object" && "chain" in value ? poolOf(value.chain) : undefined;
      if (to === undefined) continue;
      const id = `${to.pool} ${key}`;
      led.set(id, (led.get(id) ?? new Set()).add(to.size));
    }
  }
  return led;
}
