/** What operators accepted, had forgotten and leave unprotected: the ConfigMap `fairlead-networks`. */
import { containsCIDR, fieldsOf, isAbsent, isObject, itemsOf, type RawObject, stringOf } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import { checkCIDR } from "@fairlead/endpoint-filter";
import { CORE_SCHEMA, load } from "js-yaml";
import type { LearnedCIDR } from "./authority.ts";
import { type ResourceState, stateAfter } from "./facts.ts";
import { shown } from "./source.ts";

/** A CIDR that an operator lets take effect, with all that lies in it. */
interface AcceptedCIDR {
  readonly cidr: string;
  /** Of this source only. Absent: of each. */
  readonly source?: string;
}

/** A CIDR of which nothing is kept that no object defines anymore. */
interface ForgottenCIDR {
  readonly cidr: string;
  /** Milliseconds since the epoch; absent: always. */
  readonly until?: number;
}

/** What the ConfigMap `fairlead-networks` says. */
export interface Consent {
  /** CIDRs that the operator accepted. */
  readonly accepted: readonly AcceptedCIDR[];
  /** CIDRs of which nothing is kept once no object defines them. */
  readonly forgotten: readonly ForgottenCIDR[];
  /** Services that the annotation may give away although they are protected. */
  readonly unprotected: readonly ServiceKey[];
}

const NO_CONSENT: Consent = { accepted: [], forgotten: [], unprotected: [] };

/** What is known of the consent of an agent's predecessor. */
export interface KnownConsent {
  /** The object as it was last read; absent: it was never read. */
  readonly read?: Consent;
  /** Since when the object is gone, milliseconds since the epoch; absent: it was there, or was never. */
  readonly goneAt?: number;
}

/**
 * What operators accepted, had forgotten and leave unprotected: the object `fairlead-networks`, or the last one read
 * while it cannot be.
 */
export class ConsentFacts {
  #read: Consent | undefined;
  #state: ResourceState = "waiting";
  #exists = false;
  /** Milliseconds since the epoch. */
  #goneAt: number | undefined;
  #reported = new Set<string>();
  #changed = false;

  constructor({ read, goneAt }: KnownConsent) {
    this.#read = read;
    this.#goneAt = goneAt;
  }

  get state(): ResourceState | "empty" {
    return this.#state === "listed" && !this.#exists ? "empty" : this.#state;
  }

  /** Nothing is waited for at the start. */
  get settled(): boolean {
    return this.#state !== "waiting" || this.#read !== undefined;
  }

  get known(): KnownConsent {
    return {
      ...(this.#read && { read: this.#read }),
      ...(this.#goneAt !== undefined && { goneAt: this.#goneAt }),
    };
  }

  /**
   * @param raw the ConfigMap, straight from JSON and untrusted
   * @returns what is wrong with it and was not reported before
   */
  set(raw: unknown): readonly string[] {
    const { consent, problems } = readConsent(raw, this.#read ?? NO_CONSENT);
    this.#exists = true;
    this.#goneAt = undefined;
    this.#take(consent);
    const fresh = problems.filter((one) => !this.#reported.has(one));
    this.#reported = new Set(problems);
    return fresh;
  }

  /** @param now milliseconds since the epoch */
  delete(now: number): void {
    if (!this.#exists) return;
    this.#exists = false;
    this.#goneAt = now;
  }

  /** @param now milliseconds since the epoch */
  setState(state: Exclude<ResourceState, "waiting">, now: number): void {
    this.#state = stateAfter(this.#state, state);
    if (state !== "listed" || this.#exists) return;
    // The agent before this one may have read an object that is gone since.
    if (this.#read === undefined) this.#read = NO_CONSENT;
    // A clock that was set back since must not make it last.
    else this.#goneAt = Math.min(this.#goneAt ?? now, now);
  }

  /** Milliseconds since the epoch when what a deleted object said ends; undefined: nothing ends. */
  endsAt(removalDelayMs: number): number | undefined {
    // What the agent before knew holds until a list says whether the object is there again.
    return this.#goneAt === undefined || this.#state === "waiting" ? undefined : this.#goneAt + removalDelayMs;
  }

  /** Takes in what is due; whether anything is decided otherwise since the last call. */
  take(now: number, removalDelayMs: number): boolean {
    if (now >= (this.endsAt(removalDelayMs) ?? Number.POSITIVE_INFINITY)) {
      this.#take(NO_CONSENT);
      this.#goneAt = undefined;
    }
    const changed = this.#changed;
    this.#changed = false;
    return changed;
  }

  get unprotected(): readonly ServiceKey[] {
    return this.#read?.unprotected ?? NO_CONSENT.unprotected;
  }

  #take(consent: Consent): void {
    this.#changed ||= JSON.stringify(consent) !== JSON.stringify(this.#read ?? NO_CONSENT);
    this.#read = consent;
  }
}

/** Whether an operator accepted what an object says. */
export function accepts({ read }: Pick<KnownConsent, "read">, { source, cidr }: LearnedCIDR): boolean {
  const isAccepted = (one: AcceptedCIDR) =>
    (one.source === undefined || one.source === source) && containsCIDR(one.cidr, cidr);
  return read?.accepted.some(isAccepted) === true;
}

/**
 * Whether nothing is kept of a CIDR that no object defines anymore.
 *
 * @param now milliseconds since the epoch
 */
export function forgets({ read }: Pick<KnownConsent, "read">, cidr: string, now: number): boolean {
  const applies = ({ until }: ForgottenCIDR) => until === undefined || now < until;
  return read?.forgotten.some((one) => applies(one) && containsCIDR(one.cidr, cidr)) === true;
}

/** Characters of one key of the ConfigMap, and its entries: people write it, and each agent reads it. */
const MOST_TEXT = 65_536;
const MOST_ENTRIES = 1_000;
/** Problems that are reported of one object. */
const MOST_PROBLEMS = 10;

/** Reads an entry, or says what would be right. */
type Read<Entry> = (raw: unknown) => { readonly entry: Entry } | { readonly problem: string };

/**
 * Reads the ConfigMap. A wrong entry is skipped and reported; a text that cannot be read leaves what was there before.
 *
 * @param raw straight from JSON and untrusted
 * @param before what was last read
 */
export function readConsent(
  raw: unknown,
  before: Consent,
): { readonly consent: Consent; readonly problems: readonly string[] } {
  const data = fieldsOf(fieldsOf(raw)["data"]);
  const problems: string[] = [];
  const list = <Entry>(name: keyof Consent, read: Read<Entry>): readonly Entry[] | undefined => {
    const entries = parse(data[name]);
    if (typeof entries !== "string") return readEntries(name, entries, read, problems);
    problems.push(`data.${name}: ${entries}; the last one that could be read stays in effect`);
    return undefined;
  };
  const consent = {
    accepted: list("accepted", readAccepted) ?? before.accepted,
    forgotten: list("forgotten", readForgotten) ?? before.forgotten,
    unprotected: list("unprotected", readUnprotected) ?? before.unprotected,
  };
  for (const name of Object.keys(data)) {
    if (!Object.hasOwn(NO_CONSENT, name)) {
      problems.push(`data.${name}: is unknown; the keys are accepted, forgotten and unprotected`);
    }
  }
  return { consent, problems: problems.slice(0, MOST_PROBLEMS) };
}

/** As `consentOf` reads it, for JSON. */
export function consentFields({ accepted, forgotten, unprotected }: Consent): RawObject {
  const ends = forgotten.map(({ cidr, until }) => ({
    cidr,
    ...(until !== undefined && { until: new Date(until).toISOString() }),
  }));
  return { accepted, forgotten: ends, unprotected };
}

/** What an agent wrote to its file; wrong entries are left out. */
export function consentOf(fields: RawObject): Consent {
  const list = <Entry>(name: keyof Consent, read: Read<Entry>) => readEntries(name, itemsOf(fields[name]), read, []);
  return {
    accepted: list("accepted", readAccepted),
    forgotten: list("forgotten", readForgotten),
    unprotected: list("unprotected", readUnprotected),
  };
}

function readEntries<Entry>(
  name: string,
  entries: readonly unknown[],
  read: Read<Entry>,
  problems: string[],
): readonly Entry[] {
  return entries.flatMap((raw, at) => {
    const found = read(raw);
    if ("entry" in found) return [found.entry];
    problems.push(`data.${name}[${at}] is ${shown(raw)}: ${found.problem}; it is skipped`);
    return [];
  });
}

/** A text says what is wrong. */
function parse(text: unknown): readonly unknown[] | string {
  if (isAbsent(text) || text === "") return [];
  if (typeof text !== "string") return "must be text";
  if (text.length > MOST_TEXT) return `has ${text.length} characters; at most ${MOST_TEXT} are read`;
  try {
    const value = load(text, { schema: CORE_SCHEMA, maxAliases: 0 });
    if (isAbsent(value)) return [];
    if (!Array.isArray(value)) return "must be a list (YAML or JSON)";
    return value.length > MOST_ENTRIES ? `has ${value.length} entries; at most ${MOST_ENTRIES} are read` : value;
  } catch {
    return "is not YAML or JSON";
  }
}

const readAccepted: Read<AcceptedCIDR> = (raw) => {
  const checked = readCIDR(raw);
  if ("problem" in checked) return checked;
  const source = fieldsOf(raw)["source"];
  if (isAbsent(source)) return { entry: checked };
  if (typeof source !== "string") return { problem: "source must be the name of a source" };
  return { entry: { ...checked, source } };
};

const readForgotten: Read<ForgottenCIDR> = (raw) => {
  const checked = readCIDR(raw);
  if ("problem" in checked) return checked;
  const written = fieldsOf(raw)["until"];
  if (isAbsent(written)) return { entry: checked };
  const until = Date.parse(stringOf(written) ?? "");
  if (Number.isNaN(until)) return { problem: "until must be a time, such as 2030-01-31T00:00:00Z" };
  return { entry: { ...checked, until } };
};

const readUnprotected: Read<ServiceKey> = (raw) => {
  if (typeof raw === "string" && isServiceKey(raw)) return { entry: raw };
  return { problem: "must be NAMESPACE/NAME, such as default/kubernetes" };
};

function readCIDR(raw: unknown): { readonly cidr: string } | { readonly problem: string } {
  if (!isObject(raw)) return { problem: "must be a block of fields, such as {cidr: 10.16.0.0/16}" };
  const checked = checkCIDR(stringOf(raw["cidr"]) ?? "");
  return "cidr" in checked ? checked : { problem: `cidr ${checked.problem}` };
}

function isServiceKey(text: string): text is ServiceKey {
  return /^[^/]+\/[^/]+$/.test(text);
}
