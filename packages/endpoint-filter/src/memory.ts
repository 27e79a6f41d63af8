/** What was decided of services with endpoints, for those without any: kept over restarts as text. */
import { IP_FAMILIES, isObject, parseJSON, toEnd } from "@fairlead/base";
import type { IPFamily, MemoryUpdate, Ownership, OwnershipMemory, ServiceKey } from "@fairlead/core";
import type { FilterOptions } from "./options.ts";

/**
 * Changes that are kept apart before they become part of the rest: so many, and one for each 64 services. A change
 * copies these only, and all is copied so seldom that the cost of a change follows the change.
 */
const MOST_RECENT = 64;

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
  readonly #recent: ReadonlyMap<ServiceKey, Remembered | undefined>;

  private constructor(
    settled: ReadonlyMap<ServiceKey, Remembered>,
    recent: ReadonlyMap<ServiceKey, Remembered | undefined>,
  ) {
    this.#settled = settled;
    this.#recent = recent;
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
    for (const [service, now] of this.#recent) {
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
    for (const entry of this.#settled) if (!this.#recent.has(entry[0])) yield entry;
    for (const [service, now] of this.#recent) if (now !== undefined) yield [service, now];
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
    let recent: Map<ServiceKey, Remembered | undefined> | undefined;
    for (const { service, family, ownership } of updates) {
      const before = recent?.has(service) ? recent.get(service) : this.#of(service);
      if (before?.[family] === ownership) continue;
      recent ??= new Map(this.#recent);
      recent.set(service, withFamily(before, family, ownership));
    }
    if (recent === undefined) return this;
    const next = new Memory(this.#settled, recent);
    return recent.size > MOST_RECENT + this.#settled.size / MOST_RECENT ? Memory.from(next.entries()) : next;
  }

  #of(service: ServiceKey): Remembered | undefined {
    return this.#recent.has(service) ? this.#recent.get(service) : this.#settled.get(service);
  }
}

/**
 * The settings that decide who owns what: a memory made under others says nothing about these. They are what the
 * operator configured, not what was learned from it: else each learned CIDR would void the memory.
 */
export interface MemoryScope extends Pick<FilterOptions, "excludeCIDRs" | "mixedServices" | "ownershipAnnotation"> {
  /** Where CIDRs are learned from and the rules for services, each as one text. Default: none. */
  readonly sources?: readonly string[];
}

/** Equal memories are equal texts: services stand in the order of their names, one a line. */
export function serializeMemory(memory: Memory, scope: MemoryScope): string {
  return toEnd(serializeInSteps(memory, scope));
}

/** The memory as JSON, for a file that outlives the agent. Reading and writing that file is the caller's. */

const VERSION = 1;

/** The same, for those who have other things to do meanwhile; yields after each service. */
export function* serializeInSteps(memory: Memory, scope: MemoryScope): Generator<void, string> {
  const lines: string[] = [];
  for (const [service, remembered] of [...memory.entries()].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const families = IP_FAMILIES.filter((family) => remembered[family] !== undefined);
    const owners = families.map((family) => `${JSON.stringify(family)}: ${JSON.stringify(remembered[family])}`);
    lines.push(`  ${JSON.stringify(service)}: { ${owners.join(", ")} }`);
    yield;
  }
  const services = lines.length === 0 ? "{}" : `{\n${lines.join(",\n")}\n }`;
  return `{\n "version": ${VERSION},\n "scope": ${JSON.stringify(scopeText(scope))},\n "services": ${services}\n}\n`;
}

/** What was read from the text of a memory file. */
export interface ParsedMemory {
  /** The decisions; empty where the text cannot be used. */
  readonly memory: Memory;
  /** Why the memory is empty although there was a text; one log line. */
  readonly reason?: string;
}

/** Never throws: a memory that is damaged, of another version or made under other options is empty. */
export function parseMemory(text: string, scope: MemoryScope): ParsedMemory {
  const root = parseJSON(text);
  if (!isObject(root)) return nothing("is not a JSON object written by Fairlead");
  const { version, scope: madeUnder, services } = root;
  if (version !== VERSION) return nothing(`has version ${show(version)}, this Fairlead reads version ${VERSION}`);
  if (madeUnder !== scopeText(scope)) return nothing("was written with other options");
  if (!isObject(services)) return nothing("has no services");
  const entries: (readonly [ServiceKey, Remembered])[] = [];
  for (const [key, value] of Object.entries(services)) {
    const families = readFamilies(value);
    if (!isServiceKey(key) || families === undefined) return nothing(`is damaged at ${show(key)}`);
    entries.push([key, families]);
  }
  return { memory: Memory.from(entries) };
}

/** What is remembered of a service. */
export type Remembered = Readonly<Partial<Record<IPFamily, Ownership>>>;

function withFamily(
  before: Remembered = {},
  family: IPFamily,
  ownership: Ownership | undefined,
): Remembered | undefined {
  return family === "IPv4" ? remembered(ownership, before.IPv6) : remembered(before.IPv4, ownership);
}

const OWNERSHIPS: readonly unknown[] = ["ours", "foreign", "mixed"] satisfies Ownership[];

function nothing(what: string): ParsedMemory {
  return { memory: Memory.empty, reason: `the ownership memory ${what}` };
}

/** Order and repetition of CIDRs and sources mean nothing. */
function scopeText({ excludeCIDRs, mixedServices, ownershipAnnotation, sources = [] }: MemoryScope): string {
  const cidrs = [...new Set(excludeCIDRs)].sort().join(",");
  const learned = [...new Set(sources)].sort().map((source) => ` ${source}`);
  return `${cidrs} ${mixedServices}${ownershipAnnotation ? " annotation" : ""}${learned.join("")}`;
}

function readFamilies(value: unknown): Remembered | undefined {
  if (!isObject(value)) return undefined;
  const entries = Object.entries(value);
  const good = entries.length > 0 && entries.every(([family, ownership]) => isFamily(family) && isOwnership(ownership));
  return good ? Object.fromEntries(entries) : undefined;
}

function isFamily(text: string): text is IPFamily {
  return IP_FAMILIES.some((family) => family === text);
}

function isOwnership(value: unknown): value is Ownership {
  return OWNERSHIPS.includes(value);
}

function isServiceKey(text: string): text is ServiceKey {
  return /^[^/]+\/[^/]+$/.test(text);
}

function show(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 60) ?? "none";
}

const known = new Map<string, Remembered>();

/** Services that are remembered alike have one object: there are fifteen in all. Undefined: nothing is remembered. */
function remembered(IPv4: Ownership | undefined, IPv6: Ownership | undefined): Remembered | undefined {
  if (IPv4 === undefined && IPv6 === undefined) return undefined;
  const name = `${IPv4} ${IPv6}`;
  const made = known.get(name) ?? Object.freeze({ ...(IPv4 && { IPv4 }), ...(IPv6 && { IPv6 }) });
  known.set(name, made);
  return made;
}
