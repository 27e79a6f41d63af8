import type { IPFamily, MemoryUpdate, Ownership, OwnershipMemory, ServiceKey } from "@fairlead/core";
import { type Remembered, remembered } from "./remembered.ts";

/**
 * Changes that stand alongside the rest before they become part of it: so many, and one for each 64 services. A change
 * copies these only, and all is copied so seldom that the cost of a change follows the change.
 */
const BESIDE = 64;

/**
 * Last decided ownership by service and family. A value: every change gives a new memory and leaves the old one as it
 * was, or gives the same one back when nothing changed. Many changes are cheaper in one `apply`.
 */
export class Memory implements OwnershipMemory {
  /** The memory of an agent that has decided nothing yet. */
  static readonly empty: Memory = new Memory(new Map(), new Map());

  /** Memories that follow one from another have it in common. */
  readonly #settled: ReadonlyMap<ServiceKey, Remembered>;
  /** What holds in the place of that; undefined: forgotten. */
  readonly #beside: ReadonlyMap<ServiceKey, Remembered | undefined>;

  private constructor(
    settled: ReadonlyMap<ServiceKey, Remembered>,
    beside: ReadonlyMap<ServiceKey, Remembered | undefined>,
  ) {
    this.#settled = settled;
    this.#beside = beside;
  }

  /** A memory of entries, such as those of a memory file. */
  static from(entries: Iterable<readonly [ServiceKey, Remembered]>): Memory {
    const settled = new Map<ServiceKey, Remembered>();
    for (const [service, { IPv4, IPv6 }] of entries) {
      const shared = remembered(IPv4, IPv6);
      if (shared !== undefined) settled.set(service, shared);
    }
    return new Memory(settled, new Map());
  }

  /** How many decisions it has, those of both families counted. */
  get size(): number {
    let size = this.#settled.size;
    for (const [service, now] of this.#beside) {
      size += Number(now !== undefined) - Number(this.#settled.has(service));
    }
    return size;
  }

  /** The last decision for a service in a family; undefined where there was none. */
  get(service: ServiceKey, family: IPFamily): Ownership | undefined {
    return this.#of(service)?.[family];
  }

  *services(): Generator<ServiceKey, void, void> {
    for (const [service] of this.entries()) yield service;
  }

  /** Each service with its decisions, in no particular order. */
  *entries(): Generator<readonly [ServiceKey, Remembered], void, void> {
    for (const entry of this.#settled) if (!this.#beside.has(entry[0])) yield entry;
    for (const [service, now] of this.#beside) if (now !== undefined) yield [service, now];
  }

  /** The memory with one more decision, in place of an earlier one for the same service and family. */
  set(service: ServiceKey, family: IPFamily, ownership: Ownership): Memory {
    return this.apply([{ service, family, ownership }]);
  }

  /** Forgets a service that is gone, in both families. */
  forget(service: ServiceKey): Memory {
    return this.apply([
      { service, family: "IPv4" },
      { service, family: "IPv6" },
    ]);
  }

  /** Takes what a planning step came to; updates without an ownership forget. */
  apply(updates: Iterable<MemoryUpdate>): Memory {
    let beside: Map<ServiceKey, Remembered | undefined> | undefined;
    for (const { service, family, ownership } of updates) {
      const before = beside?.has(service) ? beside.get(service) : this.#of(service);
      if (before?.[family] === ownership) continue;
      beside ??= new Map(this.#beside);
      beside.set(service, withFamily(before, family, ownership));
    }
    if (beside === undefined) return this;
    const next = new Memory(this.#settled, beside);
    return beside.size > BESIDE + this.#settled.size / BESIDE ? Memory.from(next.entries()) : next;
  }

  #of(service: ServiceKey): Remembered | undefined {
    return this.#beside.has(service) ? this.#beside.get(service) : this.#settled.get(service);
  }
}

function withFamily(
  before: Remembered = {},
  family: IPFamily,
  ownership: Ownership | undefined,
): Remembered | undefined {
  return family === "IPv4" ? remembered(ownership, before.IPv6) : remembered(before.IPv4, ownership);
}
