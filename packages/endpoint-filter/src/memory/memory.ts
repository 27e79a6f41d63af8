import type { IPFamily, MemoryUpdate, Ownership, OwnershipMemory, ServiceKey } from "@fairlead/core";

export type Remembered = Readonly<Partial<Record<IPFamily, Ownership>>>;

/**
 * Last decided ownership by service and family. A value: every change gives a new memory and leaves the old one as it
 * was, or gives the same one back when nothing changed. Many changes are cheaper in one `apply`.
 */
export class Memory implements OwnershipMemory {
  static readonly empty: Memory = new Memory(new Map());

  readonly #entries: ReadonlyMap<ServiceKey, Remembered>;

  private constructor(entries: ReadonlyMap<ServiceKey, Remembered>) {
    this.#entries = entries;
  }

  static from(entries: Iterable<readonly [ServiceKey, Remembered]>): Memory {
    return new Memory(new Map(entries));
  }

  get size(): number {
    return this.#entries.size;
  }

  get(service: ServiceKey, family: IPFamily): Ownership | undefined {
    return this.#entries.get(service)?.[family];
  }

  services(): Iterable<ServiceKey> {
    return this.#entries.keys();
  }

  entries(): Iterable<readonly [ServiceKey, Remembered]> {
    return this.#entries.entries();
  }

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
    let next: Map<ServiceKey, Remembered> | undefined;
    for (const { service, family, ownership } of updates) {
      const before = (next ?? this.#entries).get(service);
      if (before?.[family] === ownership) continue;
      next ??= new Map(this.#entries);
      const after = withFamily(before, family, ownership);
      if (after === undefined) next.delete(service);
      else next.set(service, after);
    }
    return next === undefined ? this : new Memory(next);
  }
}

function withFamily(
  before: Remembered = {},
  family: IPFamily,
  ownership: Ownership | undefined,
): Remembered | undefined {
  const { [family]: _replaced, ...others } = before;
  if (ownership !== undefined) return { ...others, [family]: ownership };
  return Object.keys(others).length === 0 ? undefined : others;
}
