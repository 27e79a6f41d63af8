/** What was decided of services with endpoints, for those without any: kept over restarts as text. */
import { IP_FAMILIES, isObject, parseJSON } from "@fairlead/base";
import type { IPFamily, MemoryUpdate, Ownership, OwnershipMemory, ServiceKey } from "@fairlead/core";
import type { FilterOptions } from "./options.ts";

/** Last decided ownership by service and family. */
export class Memory implements OwnershipMemory {
  readonly #remembered = new Map<ServiceKey, Remembered>();

  /** @param entries such as those of a memory file, or of another memory */
  constructor(entries: Iterable<readonly [ServiceKey, Remembered]> = []) {
    for (const [service, { IPv4, IPv6 }] of entries) this.#set(service, remembered(IPv4, IPv6));
  }

  /** The last decision for a service in a family; undefined where there was none. */
  get(service: ServiceKey, family: IPFamily): Ownership | undefined {
    return this.#remembered.get(service)?.[family];
  }

  services(): Iterable<ServiceKey> {
    return this.#remembered.keys();
  }

  /** Each service with its decisions, in no particular order. */
  entries(): Iterable<readonly [ServiceKey, Remembered]> {
    return this.#remembered.entries();
  }

  /**
   * Takes what a planning step came to; updates without an ownership forget.
   *
   * @returns whether anything is another than before
   */
  apply(updates: Iterable<MemoryUpdate>): boolean {
    let changed = false;
    for (const { service, family, ownership } of updates) {
      const before = this.#remembered.get(service);
      if (before?.[family] === ownership) continue;
      this.#set(service, withFamily(before, family, ownership));
      changed = true;
    }
    return changed;
  }

  #set(service: ServiceKey, now: Remembered | undefined): void {
    if (now === undefined) this.#remembered.delete(service);
    else this.#remembered.set(service, now);
  }
}

/**
 * The settings that decide about ownership: a memory made under others says nothing about these. They are what the
 * operator configured, not what was learned from it: else each learned CIDR would void the memory.
 */
export interface MemoryScope extends Pick<FilterOptions, "excludeCIDRs" | "mixedServices" | "ownershipAnnotation"> {
  /** Where CIDRs are learned from and the rules for services, each as one text. Default: none. */
  readonly sources?: readonly string[];
}

/** The memory as JSON, for a file that outlives the agent. Reading and writing that file is the caller's. */

const VERSION = 1;

/**
 * Equal memories are equal texts: services stand in the order of their names, one a line. Yields after each service;
 * what changes meanwhile is not in the text.
 */
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
  return { memory: new Memory(entries) };
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
  return { memory: new Memory(), reason: `the ownership memory ${what}` };
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
