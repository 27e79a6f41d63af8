import type { Hex, SetElement } from "@fairlead/netfilter/nft";
import type { PoolUse } from "./group-parts.ts";
import { endpointValue, slotKey } from "./keys.ts";
import type { Pool } from "./placement.ts";
import { poolMapName } from "./pool-chains.ts";
import { sameEndpoint } from "./slots.ts";

/** Takes elements that go and elements that come. */
export interface ElementChanges {
  delete(set: string, key: Hex): void;
  add(set: string, element: SetElement): void;
}

/** Slots in one step. */
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
    slots: pool?.slots ?? [],
    map: pool && poolMapName(kind, pool),
    key: (slot: number) => key + slotKey(slot),
  });
  yield* slotChanges(inClass(before?.pool), inClass(after?.pool), to);
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
