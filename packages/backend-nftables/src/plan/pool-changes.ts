import { type Hex, hostHex, type SetElement } from "@fairlead/netfilter/nft";
import type { PoolUse } from "./group-parts.ts";
import { endpointValue } from "./keys.ts";
import { poolName } from "./pools.ts";
import { type Slots, sameEndpoint } from "./slots.ts";

/** Takes elements that go and elements that come. */
export interface ElementChanges {
  delete(set: string, key: Hex): void;
  add(set: string, element: SetElement): void;
}

/** The elements by which a pool under a key differs from what it was; only these are made. */
export function poolChanges(before: PoolUse | undefined, after: PoolUse | undefined, to: ElementChanges): void {
  const key = (after ?? before)?.key ?? "";
  const mapOf = (use: PoolUse | undefined) => use && poolName(use.kind, use.pool.size);
  slotChanges(
    { map: mapOf(before), slots: before?.pool.slots ?? [] },
    { map: mapOf(after), slots: after?.pool.slots ?? [] },
    key,
    to,
  );
}

interface InMap {
  readonly map: string | undefined;
  readonly slots: Slots;
}

function slotChanges(before: InMap, after: InMap, key: Hex, to: ElementChanges): void {
  const sameMap = before.map === after.map;
  if (sameMap && before.slots === after.slots) return;
  for (let slot = 0; slot < Math.max(before.slots.length, after.slots.length); slot++) {
    const [was, is] = [before.slots[slot], after.slots[slot]];
    if (sameMap && sameEndpoint(was, is)) continue;
    const place = key + hostHex(slot);
    if (was !== undefined && before.map !== undefined) to.delete(before.map, place);
    if (is !== undefined && after.map !== undefined) to.add(after.map, { key: place, value: endpointValue(is) });
  }
}
