/** What outlives a restart, as text for a file. */
import { fieldsOf, isObject, itemsOf, parseJSON, stringOf } from "@fairlead/base";
import { checkCIDR } from "@fairlead/endpoint-filter";
import { consentFields, consentOf, type KnownConsent } from "./consent.ts";
import type { Gone } from "./decide.ts";
import type { KnownNamespaces } from "./rules.ts";

/** A CIDR that was in effect. */
export interface KnownCIDR {
  /** Canonical. */
  readonly cidr: string;
  /** The objects that defined it: `Subnet/ovn-default`. */
  readonly objects: readonly string[];
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Since when no object defines it anymore; absent: one does. */
  readonly gone?: Gone;
}

/** What outlives a restart: what was in effect, by the side and scope of the source that defined it. */
export interface LastKnown {
  /** A source that was never complete is not there; one that was and is empty is. */
  readonly sources: ReadonlyMap<string, readonly KnownCIDR[]>;
  /** What operators had accepted. */
  readonly consent: KnownConsent;
  /** Absent: namespaces were never listed, or no rule asks for them. */
  readonly namespaces?: KnownNamespaces;
  /** Names of kube-ovn's default VPC. */
  readonly defaultVPCs?: readonly string[];
}

/** Nothing was in effect: a first start. */
export const NOTHING_KNOWN: LastKnown = { sources: new Map(), consent: {} };

const VERSION = 2;

/** As JSON, for a file that outlives the agent; reading and writing it is the caller's. */
export function serializeLastKnown({ sources, consent, namespaces, defaultVPCs }: LastKnown): string {
  const labels = namespaces && { namespaces: Object.fromEntries(namespaces) };
  const written = {
    version: VERSION,
    sources: Object.fromEntries(sources),
    consent: { ...consent, ...(consent.read && { read: consentFields(consent.read) }) },
    ...labels,
    ...(defaultVPCs !== undefined && defaultVPCs.length > 0 && { defaultVPCs }),
  };
  return `${JSON.stringify(written, undefined, 1)}\n`;
}

/** What was read from the text of a state file. */
export interface ParsedLastKnown {
  /** What was in effect; `NOTHING_KNOWN` where the text cannot be used. */
  readonly known: LastKnown;
  /** Why nothing is known although there was a text; one log line. */
  readonly reason?: string;
}

/** Never throws: of a text that is damaged or of another version nothing is taken. */
export function parseLastKnown(text: string): ParsedLastKnown {
  const root = fieldsOf(parseJSON(text));
  if (root["version"] !== VERSION) {
    return nothing(`have an unknown format (this Fairlead writes version ${VERSION})`);
  }
  const sources = new Map<string, readonly KnownCIDR[]>();
  for (const [scope, written] of Object.entries(fieldsOf(root["sources"]))) {
    const cidrs = itemsOf(written).map(readCIDR);
    const good = cidrs.filter((cidr) => cidr !== undefined);
    if (!Array.isArray(written) || good.length < cidrs.length)
      return nothing(`are damaged at ${JSON.stringify(scope)}`);
    sources.set(scope, good);
  }
  const consent = readKnownConsent(root["consent"]);
  const vpcs = itemsOf(root["defaultVPCs"]).filter((name) => typeof name === "string");
  const known = { sources, consent, ...(vpcs.length > 0 && { defaultVPCs: vpcs }) };
  if (root["namespaces"] === undefined) return { known };
  const namespaces = Object.entries(fieldsOf(root["namespaces"])).map(
    ([name, labels]) => [name, texts(labels)] as const,
  );
  return { known: { ...known, namespaces: new Map(namespaces) } };
}

/** It was written by an agent, so what is not as it writes it is left out. */
function readKnownConsent(raw: unknown): KnownConsent {
  const { read, goneAt } = fieldsOf(raw);
  if (!isObject(read)) return {};
  return { read: consentOf(read), ...(isMoment(goneAt) && { goneAt }) };
}

function texts(fields: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(fieldsOf(fields)).map(([name, value]) => [name, stringOf(value)] as const);
  return Object.fromEntries(entries.filter((entry): entry is readonly [string, string] => entry[1] !== undefined));
}

function readCIDR(value: unknown): KnownCIDR | undefined {
  const { cidr, objects, since, gone } = fieldsOf(value);
  const checked = checkCIDR(stringOf(cidr) ?? "");
  if (!("cidr" in checked) || !isMoment(since)) return undefined;
  const names = itemsOf(objects).map(stringOf);
  const known = { cidr: checked.cidr, objects: names.filter((name) => name !== undefined), since };
  if (!isObject(gone)) return known;
  return { ...known, gone: isMoment(gone["at"]) ? { at: gone["at"] } : {} };
}

/** What a Date can be, in milliseconds since the epoch (ECMA-262, "Time Values"): anything else fails in reports. */
function isMoment(value: unknown): value is number {
  return typeof value === "number" && !Number.isNaN(new Date(value).getTime());
}

function nothing(what: string): ParsedLastKnown {
  return { known: NOTHING_KNOWN, reason: `the last known networks ${what}` };
}
