/** What a row of the table of expressions gives: netlink attributes both ways, and the words of nft. */

import type { Attributes, AttributeWriter } from "../../netlink/attributes.ts";
import type { DataType, Hex, NamedObject, NftFamily } from "../types.ts";

/**
 * A kind of expression, all of it: how netlink has it, and how `nft` prints it. What it does to a packet is the
 * tracer's.
 * Kinds are the kernel's (`nft --debug=netlink` prints them); one that is not in the table is refused, never left out.
 */
export interface ExpressionKind<E extends { readonly kind: string }> {
  /** The kernel's name of it; `kind` of the typed expression, where the kernel needs no second one. */
  readonly name: string;
  /** Writes what is in NFTA_EXPR_DATA. */
  encode(expression: E, writer: AttributeWriter): void;
  /**
   * @param family of the table
   * @returns undefined when it is of this kind and says what is not known here
   */
  decode(data: Attributes, family: NftFamily): E | undefined;
  /** Adds its words, or leaves a value in a register for those that follow. */
  print(expression: E, printer: Printer): void;
}

/**
 * Where expressions leave what later ones take: the place of a 32-bit register, 0 to 15. Values longer than four bytes
 * go over several.
 */
export type Register = number;

/** NFT_REG_VERDICT: a verdict is left there, and taken at once. */
export const VERDICT_REGISTER = 0;

const FIRST_OF_16_BYTES = 1;
const FIRST_OF_4_BYTES = 8;

/** The kernel's number, as it writes it itself: NFT_REG_1 to NFT_REG_4 where one of those begins, else NFT_REG32_xx. */
export function registerNumber(register: Register): number {
  return register % 4 === 0 ? FIRST_OF_16_BYTES + register / 4 : FIRST_OF_4_BYTES + register;
}

export function registerOf(number: number): Register {
  return number < FIRST_OF_4_BYTES ? (number - FIRST_OF_16_BYTES) * 4 : number - FIRST_OF_4_BYTES;
}

export interface Value {
  readonly text: string;
  readonly type?: DataType;
  readonly bits?: "state" | "status" | "flags";
  readonly words?: Readonly<Record<string, number>>;
  /** The length of the whole field, where only its first bytes were loaded or masked: a prefix is compared. */
  readonly length?: number;
  /** Bytes that were kept of it by a mask. */
  readonly masked?: Hex;
  /** Comparisons with it name their operator, be it ==. */
  readonly computed?: true;
  readonly constant?: Hex;
}

/** What is said of a set in a rule, and how long its keys and values are, bytes. */
export interface SetWords {
  readonly text: string;
  readonly keyLength: number;
  readonly valueLength: number;
  readonly objects?: NamedObject;
}

/** What a kind of expression prints with: words are said, and registers hold values for those that follow. */
export interface Printer {
  /** Of the table: what stands where in the network header. */
  readonly family: NftFamily;
  say(words: string): void;
  /** A register gets `length` bytes of something. */
  load(to: Register, length: number, value: Value): void;
  constant(to: Register, value: Hex): void;
  /** What the registers hold from `from` on, `length` bytes: parts of a concatenation with dots between them. */
  value(from: Register, length: number): Value;
  set(name: string): SetWords;
  compare(from: Register, operator: string, value: Hex): void;
  mask(from: Register, to: Register, mask: Hex, xor: Hex): void;
  translate(family: NftFamily, address: Register, port: Register | undefined): void;
}

/** What becomes of a packet, or where it goes on. */
export type Verdict =
  | { readonly kind: "accept" | "drop" | "return" | "continue" }
  | { readonly kind: "jump" | "goto"; readonly chain: string };

/** linux/netfilter/nf_tables.h, enum nft_verdicts; accept and drop are those of netfilter. */
const CODES = { drop: 0, accept: 1, continue: -1, jump: -3, goto: -4, return: -5 } as const;

export function verdictCode({ kind }: Verdict): number {
  return CODES[kind];
}

/** @returns undefined for a code that no rule of nftables has here (queue, or one of a newer kernel) */
export function verdictOf(code: number, chain: string | undefined): Verdict | undefined {
  const found = Object.entries(CODES).find(([, known]) => known === code);
  // The entries of a constant have its own keys.
  const kind = found?.[0] as keyof typeof CODES | undefined;
  if (kind === undefined) return undefined;
  if (kind !== "jump" && kind !== "goto") return { kind };
  return chain === undefined ? undefined : { kind, chain };
}

/** A verdict as nft prints it: `accept`, `jump services`. */
export function verdictText(verdict: Verdict): string {
  return "chain" in verdict ? `${verdict.kind} ${verdict.chain}` : verdict.kind;
}

const UNITS: readonly (readonly [unit: string, milliseconds: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
];

/** Milliseconds as nft writes them: `3h`, `1m30s`. */
export function durationText(milliseconds: number): string {
  let rest = milliseconds;
  const parts = UNITS.map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? "" : `${count}${unit}`;
  });
  return parts.join("") || "0s";
}

/** @returns milliseconds; undefined: it is not a duration */
export function durationOf(text: string): number | undefined {
  if (!/^(\d+(ms|[dhms]))+$/.test(text)) return undefined;
  const parts = text.matchAll(/(\d+)(ms|[dhms])/g);
  return Array.from(parts, ([, count, unit]) => Number(count) * sizeOf(unit)).reduce((sum, part) => sum + part, 0);
}

function sizeOf(unit: string | undefined): number {
  return UNITS.find(([name]) => name === unit)?.[1] ?? 0;
}
