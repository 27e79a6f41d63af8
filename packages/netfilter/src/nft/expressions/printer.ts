import type { NftFamily } from "../family.ts";
import type { Hex } from "../hex.ts";
import type { NamedObject } from "../named-objects.ts";
import type { DataType } from "../types.ts";
import type { Register } from "./registers.ts";

/** What a register holds, in words. */
export interface Value {
  readonly text: string;
  readonly type?: DataType;
  /** Bits that have names of their own. */
  readonly bits?: "state" | "status" | "flags";
  /** Numbers that have names, by name. */
  readonly words?: Readonly<Record<string, number>>;
  /** The length of the whole field, where only its first bytes were loaded or masked: a prefix is compared. */
  readonly length?: number;
  /** Bytes that were kept of it by a mask. */
  readonly masked?: Hex;
  /** Comparisons with it name their operator, be it ==. */
  readonly computed?: true;
  /** A constant's bytes. */
  readonly constant?: Hex;
}

/** What is said of a set in a rule, and how long its keys and values are, bytes. */
export interface SetWords {
  readonly text: string;
  readonly keyLength: number;
  readonly valueLength: number;
  /** What a map of named objects leads to. */
  readonly objects?: NamedObject;
}

/** What a kind of expression prints with: words are said, and registers hold values for those that follow. */
export interface Printer {
  /** Of the table: what stands where in the network header. */
  readonly family: NftFamily;
  say(words: string): void;
  /** A register gets `length` bytes of something. */
  load(to: Register, length: number, value: Value): void;
  /** A register gets a constant. */
  constant(to: Register, value: Hex): void;
  /** What the registers hold from `from` on, `length` bytes: parts of a concatenation with dots between them. */
  value(from: Register, length: number): Value;
  set(name: string): SetWords;
  compare(from: Register, operator: string, value: Hex): void;
  mask(from: Register, to: Register, mask: Hex, xor: Hex): void;
  translate(family: NftFamily, address: Register, port: Register | undefined): void;
}
