import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import { checkCIDR } from "@fairlead/endpoint-filter";
import type { KnownNamespaces } from "./namespaces.ts";

/** A CIDR that counted. */
export interface KnownCIDR {
  readonly cidr: string;
  readonly objects: readonly string[];
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly consented: boolean;
}

/** What outlives a restart: what counted, by the side and scope of the source that said it. */
export interface LastKnown {
  /** A source that was never complete is not there; one that was and is empty is. */
  readonly sources: ReadonlyMap<string, readonly KnownCIDR[]>;
  /** Services that were turned foreign since the last consent. */
  readonly turned: readonly ServiceKey[];
  /** Absent: namespaces were never listed, or no rule asks for them. */
  readonly namespaces?: KnownNamespaces;
}

export const NOTHING_KNOWN: LastKnown = { sources: new Map(), turned: [] };

const VERSION = 1;

/** As JSON, for a file that outlives the agent; reading and writing it is the caller's. */
export function serialiseLastKnown({ sources, turned, namespaces }: LastKnown): string {
  const labels = namespaces && { namespaces: Object.fromEntries(namespaces) };
  const written = { version: VERSION, sources: Object.fromEntries(sources), turned, ...labels };
  return `${JSON.stringify(written, undefined, 1)}\n`;
}

export interface ParsedLastKnown {
  readonly known: LastKnown;
  /** Why nothing is known although there was a text; one log line. */
  readonly reason?: string;
}

/** Never throws: of a text that is damaged or of another version nothing is taken. */
export function parseLastKnown(text: string): ParsedLastKnown {
  const root = fieldsOf(parseJSON(text));
  if (root["version"] !== VERSION) return nothing(`have an unknown format (this Fairlead writes version ${VERSION})`);
  const sources = new Map<string, readonly KnownCIDR[]>();
  for (const [scope, written] of Object.entries(fieldsOf(root["sources"]))) {
    const cidrs = itemsOf(written).map(readCIDR);
    const good = cidrs.filter((cidr) => cidr !== undefined);
    if (!Array.isArray(written) || good.length < cidrs.length)
      return nothing(`are damaged at ${JSON.stringify(scope)}`);
    sources.set(scope, good);
  }
  const turned = itemsOf(root["turned"]).filter(isServiceKey);
  if (root["namespaces"] === undefined) return { known: { sources, turned } };
  const namespaces = Object.entries(fieldsOf(root["namespaces"])).map(
    ([name, labels]) => [name, texts(labels)] as const,
  );
  return { known: { sources, turned, namespaces: new Map(namespaces) } };
}

function texts(fields: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(fieldsOf(fields)).map(([name, value]) => [name, stringOf(value)] as const);
  return Object.fromEntries(entries.filter((entry): entry is readonly [string, string] => entry[1] !== undefined));
}

function readCIDR(value: unknown): KnownCIDR | undefined {
  const { cidr, objects, since, consented } = fieldsOf(value);
  const checked = checkCIDR(stringOf(cidr) ?? "");
  if (!("cidr" in checked) || !isMoment(since) || typeof consented !== "boolean") return undefined;
  const names = itemsOf(objects).map(stringOf);
  return { cidr: checked.cidr, objects: names.filter((name) => name !== undefined), since, consented };
}

/** What a Date can be, in milliseconds since the epoch (ECMA-262, "Time Values"): anything else fails in reports. */
function isMoment(value: unknown): value is number {
  return typeof value === "number" && !Number.isNaN(new Date(value).getTime());
}

function isServiceKey(value: unknown): value is ServiceKey {
  return typeof value === "string" && /^[^/]+\/[^/]+$/.test(value);
}

function nothing(what: string): ParsedLastKnown {
  return { known: NOTHING_KNOWN, reason: `the last known networks ${what}` };
}

function parseJSON(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
