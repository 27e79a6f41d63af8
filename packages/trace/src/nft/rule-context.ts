/** What a rule of nftables is evaluated with: registers, sets, and assumptions. */

import {
  type Hex,
  hostHex,
  lengthOf,
  type NftRule,
  type NftSet,
  type NftTable,
  type SetElement,
} from "@fairlead/netfilter/nft";
import type { Remembered } from "../environment.ts";
import type { Host } from "../host.ts";
import type { TraceError } from "../outcome.ts";
import type { TableName } from "../packet.ts";
import type { List, RuleVerdict, Walk } from "../walk.ts";

export interface NftRuleContext {
  readonly walk: Walk;
  readonly host: Host;
  readonly rule: NftRule;
  readonly sets: NftSets;
  readonly registers: Registers;
  /** Takes both ways where the rule can't be decided. */
  readonly assuming: boolean;
  /** What this way takes for granted of the rule. */
  readonly assumed: Assumed | undefined;
  readonly undecidable: (problem: string) => TraceError;
}

export interface Assumed {
  readonly matched: boolean;
  readonly problem: string;
}

/** What an expression makes of the rule; undefined: it goes on. */
export type Result = End | undefined;

type End =
  /** The packet goes on at the next rule. */
  | { readonly kind: "break" }
  /** Goes on with any of the numbers from 0 to before `modulus` in the register, each as probable. */
  | { readonly kind: "draw"; readonly modulus: number; readonly to: number }
  /** Goes on with any of these values in the register, each as probable as it says. */
  | { readonly kind: "choice"; readonly among: readonly Chance[]; readonly to: number }
  /** Whether the rule goes on is unknown. */
  | { readonly kind: "open"; readonly problem: string }
  | Exclude<RuleVerdict, { readonly kind: "next" }>;

/** One of the values that a register may have, for all that come to the same. */
interface Chance {
  readonly value: Hex;
  /** 0…1; those of one choice add up to 1. */
  readonly share: number;
}

export const BREAK: End = { kind: "break" };

const COUNT = 16;

/** Half a byte is unknown. */
const UNKNOWN = "?";

const DIGITS = 8;

/** What a rule's expressions leave for those that follow: 16 registers of 32 bits, as hexadecimal digits. */
export class Registers {
  readonly #words: string[];
  /** Why digits of them are unknown; the last one is right more often than not. */
  reason = "nothing was loaded there";

  constructor(words: readonly string[] = new Array<string>(COUNT).fill(UNKNOWN.repeat(DIGITS))) {
    this.#words = [...words];
  }

  copy(): Registers {
    const made = new Registers(this.#words);
    made.reason = this.reason;
    return made;
  }

  /** Leaves a value from a register on; the rest of its last one becomes zero. */
  load(to: number, value: string): void {
    for (let at = 0; at < value.length; at += DIGITS) {
      this.#words[to + at / DIGITS] = value.slice(at, at + DIGITS).padEnd(DIGITS, "0");
    }
  }

  /** A number in the byte order of the machine. */
  loadNumber(to: number, value: number): void {
    this.load(to, hostHex(value));
  }

  /** @param bytes how many of them are unknown */
  loadUnknown(to: number, bytes: number, reason: string): void {
    this.load(to, UNKNOWN.repeat(2 * bytes));
    this.reason = reason;
  }

  read(from: number, bytes: number): string {
    return this.#words
      .slice(from, from + Math.ceil(bytes / 4))
      .join("")
      .slice(0, 2 * bytes);
  }
}

export function isKnown(digits: string): boolean {
  return !digits.includes(UNKNOWN);
}

/** Whether digits of which some are unknown may be those of a value. */
export function mayBe(digits: string, value: string): boolean {
  for (let at = 0; at < value.length; at += 1) {
    if (digits[at] !== UNKNOWN && digits[at] !== value[at]) return false;
  }
  return true;
}

/** What looking a key up comes to; open: it is unknown, and why. */
type LookupResult =
  | { readonly kind: "found"; readonly value: SetElement["value"] }
  | { readonly kind: "absent" }
  | { readonly kind: "open"; readonly problem: string };

const ABSENT: LookupResult = { kind: "absent" };

/** The sets of a table, ready to be asked. */
export class NftSets {
  readonly #sets: NftTable["sets"];
  readonly name: TableName;
  readonly #intervals = new Map<string, (key: Hex) => SetElement | undefined>();

  constructor({ family, name, sets }: NftTable) {
    this.#sets = sets;
    this.name = `${family} ${name}`;
  }

  get(name: string): NftSet | undefined {
    return this.#sets.get(name);
  }

  /**
   * @param key of which some digits may not be known
   * @param remembered what packets put into the sets or took out of them, the last first
   */
  find(set: NftSet, key: string, remembered: Iterable<Remembered>): LookupResult {
    if (!isKnown(key)) return this.#findAmong(set, key, remembered);
    for (const one of remembered) {
      if (one.table !== this.name || one.set !== set.name || one.key !== key) continue;
      return one.deleted ? ABSENT : { kind: "found", value: one.value };
    }
    const element = this.#element(set, key);
    return element === undefined ? ABSENT : { kind: "found", value: element.value };
  }

  /** The first key of each part in which a set of intervals has all keys alike, and how many of all keys that is. */
  parts(set: NftSet): readonly Chance[] {
    const digits = 2 * lengthOf(set.key);
    const bounds = new Set(["0".repeat(digits), ...[...set.elements.values()].map(({ key }) => key).sort()]);
    const all = 16 ** digits;
    const firsts = [...bounds].map((value) => ({ value, at: Number.parseInt(value, 16) }));
    return firsts.map(({ value, at }, index) => ({ value, share: ((firsts[index + 1]?.at ?? all) - at) / all }));
  }

  #element(set: NftSet, key: Hex): SetElement | undefined {
    if (!set.flags.includes("interval")) return set.elements.get(key);
    const known = this.#intervals.get(set.name) ?? intervalsOf(set);
    this.#intervals.set(set.name, known);
    return known(key);
  }

  /** No element that the key may be is as good as knowing it. */
  #findAmong(set: NftSet, key: string, remembered: Iterable<Remembered>): LookupResult {
    const candidates = [...remembered].some(
      (one) => one.table === this.name && one.set === set.name && mayBe(key, one.key),
    );
    if (!candidates && set.elements.size === 0) return ABSENT;
    const among = set.flags.includes("interval") || [...set.elements.keys()].some((one) => mayBe(key, one));
    if (!candidates && !among) return ABSENT;
    return { kind: "open", problem: `the key that is looked up in @${set.name} is not known` };
  }
}

/** What was remembered on a walk, the last first, and what had been before it. */
export function* rememberedBy(
  walk: List<Remembered> | undefined,
  before: readonly Remembered[],
): Generator<Remembered> {
  for (let at = walk; at !== undefined; at = at.before) yield at.item;
  yield* before.toReversed();
}

/**
 * Looks keys up in a set of intervals: one begins with an element and goes to before the next that is an end, or to the
 * last key of all.
 */
function intervalsOf(set: NftSet): (key: Hex) => SetElement | undefined {
  const bounds = [...set.elements.values()].sort(inOrder);
  return (key) => {
    const below = bounds.findLast((bound) => bound.key <= key);
    return below === undefined || below.intervalEnd ? undefined : below;
  };
}

/** Where one interval ends and another begins, the end comes first. */
function inOrder(a: SetElement, b: SetElement): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return Number(b.intervalEnd === true) - Number(a.intervalEnd === true);
}
