import { IP_FAMILIES, isObject, parseJSON, toEnd } from "@fairlead/base";
import type { IPFamily, Ownership, ServiceKey } from "@fairlead/core";
import type { FilterOptions } from "../options.ts";
import { Memory } from "./memory.ts";
import type { Remembered } from "./remembered.ts";

/** The memory as JSON, for a file that outlives the agent. Reading and writing that file is the caller's. */

const VERSION = 1;
const OWNERSHIPS: readonly unknown[] = ["ours", "foreign", "mixed"] satisfies Ownership[];

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
