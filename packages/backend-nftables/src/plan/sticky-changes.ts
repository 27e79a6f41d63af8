import type { EndpointSetName, PlanEndpoint, Protocol } from "@fairlead/core";
import { type Hex, hostHex } from "@fairlead/netfilter/nft";
import { endpointValue, protocolKey, rememberedValue, slotKey } from "./keys.ts";
import type { Memory } from "./memory.ts";
import type { Placement, Pool } from "./placement.ts";
import { type ElementChanges, STEP } from "./pool-changes.ts";
import { endpointName } from "./slots.ts";
import { memberMap, slotMap } from "./sticky-sets.ts";

/** The endpoints of a set of a service port with affinity, which stand under its number, whatever its frontends are. */
interface StickyPool {
  readonly pool: Pool;
  readonly memory: Memory;
  readonly protocol: Protocol;
}

/** The elements by which what clients of a group are led to differs from what it was. A step for many endpoints. */
export function* stickyChanges(
  before: Placement | undefined,
  after: Placement | undefined,
  to: ElementChanges,
): Generator<void> {
  for (const set of ["cluster", "local"] as const) {
    const [was, is] = [stickyPool(before, set), stickyPool(after, set)];
    if (was?.pool.slots === is?.pool.slots && was?.memory === is?.memory) continue;
    yield* changesOf(slotElements(was), slotElements(is), slotMap(set), to);
    yield* changesOf(endpointElements(was), endpointElements(is), memberMap(set), to);
  }
}

function stickyPool(placement: Placement | undefined, set: EndpointSetName): StickyPool | undefined {
  const { memory, group, [set]: pool } = placement ?? {};
  return memory && pool && group && { pool, memory, protocol: group.protocol };
}

/** Two of them differ where their marks do. */
interface Made {
  readonly key: Hex;
  readonly mark: number;
  readonly value: () => Hex;
}

/** To draw from. */
function* slotElements(sticky: StickyPool | undefined): Generator<Made> {
  if (sticky === undefined) return;
  const number = hostHex(sticky.memory.number);
  for (const [slot, endpoint] of sticky.pool.slots.entries()) {
    const mark = numberOf(endpoint, sticky);
    yield { key: number + slotKey(slot), mark, value: () => rememberedValue(number, mark) };
  }
}

/** To go to. */
function* endpointElements(sticky: StickyPool | undefined): Generator<Made> {
  if (sticky === undefined) return;
  const [number, protocol] = [hostHex(sticky.memory.number), protocolKey(sticky.protocol)];
  for (const endpoint of sticky.pool.slots) {
    const mark = numberOf(endpoint, sticky);
    yield { key: number + hostHex(mark) + protocol, mark, value: () => endpointValue(endpoint) };
  }
}

function numberOf(endpoint: PlanEndpoint, { memory }: StickyPool): number {
  return memory.endpoints.get(endpointName(endpoint)) ?? 0;
}

function* changesOf(before: Iterable<Made>, after: Iterable<Made>, set: string, to: ElementChanges): Generator<void> {
  const was = new Map<Hex, number>();
  let steps = 0;
  for (const { key, mark } of before) {
    was.set(key, mark);
    if (++steps % STEP === 0) yield;
  }
  for (const { key, mark, value } of after) {
    if (++steps % STEP === 0) yield;
    const known = was.get(key);
    was.delete(key);
    if (known === mark) continue;
    if (known !== undefined) to.delete(set, key);
    to.add(set, { key, value: value() });
  }
  for (const key of was.keys()) {
    to.delete(set, key);
    if (++steps % STEP === 0) yield;
  }
}
