/** Expressions on registers: bits, comparisons, and sets. */

import type { Attributes, AttributeWriter } from "../../netlink/attributes.ts";
import type { Hex } from "../types.ts";
import {
  durationText,
  type ExpressionKind,
  type Register,
  registerNumber,
  registerOf,
  VERDICT_REGISTER,
  type Verdict,
  verdictCode,
  verdictOf,
  verdictText,
} from "./kind.ts";

/** Goes on with the rule only where a register compares to a constant. */
export interface Cmp {
  readonly kind: "cmp";
  readonly operator: Operator;
  readonly from: Register;
  readonly value: Hex;
}

/** enum nft_cmp_ops, by their numbers. */
const OPERATORS = ["==", "!=", "<", "<=", ">", ">="] as const;
type Operator = (typeof OPERATORS)[number];

const CMP_DATA = { from: 1, operator: 2, value: 3 } as const;
/** NFTA_DATA_VALUE. */
const DATA_VALUE = 1;

export const cmp: ExpressionKind<Cmp> = {
  name: "cmp",
  encode({ operator, from, value }, writer) {
    writer.u32(CMP_DATA.from, registerNumber(from)).u32(CMP_DATA.operator, OPERATORS.indexOf(operator));
    writer.nest(CMP_DATA.value, (inner) => inner.hex(DATA_VALUE, value));
  },
  decode(data) {
    const from = data.u32(CMP_DATA.from);
    const operator = OPERATORS[data.u32(CMP_DATA.operator) ?? -1];
    const value = data.nested(CMP_DATA.value)?.hex(DATA_VALUE);
    if (from === undefined || operator === undefined || value === undefined) return undefined;
    return { kind: "cmp", operator, from: registerOf(from), value };
  },
  print: ({ operator, from, value }, printer) => printer.compare(from, operator, value),
};

/** `to` becomes `from & mask ^ xor`; an or is one with the bits left out of the mask. */
export interface Bitwise {
  readonly kind: "bitwise";
  readonly from: Register;
  readonly to: Register;
  readonly mask: Hex;
  readonly xor: Hex;
}

const BITWISE_DATA = { from: 1, to: 2, length: 3, mask: 4, xor: 5, operation: 6 } as const;
/** NFT_BITWISE_MASK_XOR, formerly NFT_BITWISE_BOOL: the only operation that kernels before 5.6 have. */
const MASK_XOR = 0;

export const bitwise: ExpressionKind<Bitwise> = {
  name: "bitwise",
  encode({ from, to, mask, xor }, writer) {
    writer
      .u32(BITWISE_DATA.from, registerNumber(from))
      .u32(BITWISE_DATA.to, registerNumber(to))
      .u32(BITWISE_DATA.length, mask.length / 2);
    writer.nest(BITWISE_DATA.mask, (inner) => inner.hex(DATA_VALUE, mask));
    writer.nest(BITWISE_DATA.xor, (inner) => inner.hex(DATA_VALUE, xor));
  },
  decode(data) {
    const [from, to] = [data.u32(BITWISE_DATA.from), data.u32(BITWISE_DATA.to)];
    const mask = data.nested(BITWISE_DATA.mask)?.hex(DATA_VALUE);
    const xor = data.nested(BITWISE_DATA.xor)?.hex(DATA_VALUE);
    const operation = data.u32(BITWISE_DATA.operation) ?? MASK_XOR;
    if (from === undefined || to === undefined || mask === undefined || xor === undefined) return undefined;
    if (operation !== MASK_XOR) return undefined;
    return { kind: "bitwise", from: registerOf(from), to: registerOf(to), mask, xor };
  },
  print: ({ from, to, mask, xor }, printer) => printer.mask(from, to, mask, xor),
};

/** Puts a constant into a register, or gives a verdict. */
export type Immediate =
  | { readonly kind: "immediate"; readonly to: Register; readonly value: Hex }
  | { readonly kind: "immediate"; readonly verdict: Verdict };

const IMMEDIATE_DATA = { to: 1, data: 2 } as const;
/** NFTA_DATA_VERDICT. */
const DATA_VERDICT = 2;
/** NFTA_VERDICT_CODE and NFTA_VERDICT_CHAIN. */
const VERDICT = { code: 1, chain: 2 } as const;

export const immediate: ExpressionKind<Immediate> = {
  name: "immediate",
  encode(expression, writer) {
    if ("verdict" in expression) {
      writer
        .u32(IMMEDIATE_DATA.to, VERDICT_REGISTER)
        .nest(IMMEDIATE_DATA.data, (inner) => encodeVerdict(expression.verdict, inner));
      return;
    }
    writer.u32(IMMEDIATE_DATA.to, registerNumber(expression.to));
    writer.nest(IMMEDIATE_DATA.data, (inner) => inner.hex(DATA_VALUE, expression.value));
  },
  decode(data) {
    const to = data.u32(IMMEDIATE_DATA.to);
    const inner = data.nested(IMMEDIATE_DATA.data);
    if (to === undefined || inner === undefined) return undefined;
    const verdict = decodeVerdict(inner);
    if (to === VERDICT_REGISTER) return verdict && { kind: "immediate", verdict };
    const value = inner.hex(DATA_VALUE);
    return value === undefined ? undefined : { kind: "immediate", to: registerOf(to), value };
  },
  print(expression, printer) {
    if ("verdict" in expression) printer.say(verdictText(expression.verdict));
    else printer.constant(expression.to, expression.value);
  },
};

/** Writes NFTA_DATA_VERDICT. */
export function encodeVerdict(verdict: Verdict, writer: AttributeWriter): void {
  writer.nest(DATA_VERDICT, (inner) => {
    inner.u32(VERDICT.code, verdictCode(verdict));
    if ("chain" in verdict) inner.text(VERDICT.chain, verdict.chain);
  });
}

/** @param data what holds NFTA_DATA_VERDICT, if it is one */
export function decodeVerdict(data: Attributes): Verdict | undefined {
  return verdictIn(data.nested(DATA_VERDICT));
}

/** @param verdict what holds NFTA_VERDICT_CODE and NFTA_VERDICT_CHAIN */
function verdictIn(verdict: Attributes | undefined): Verdict | undefined {
  const code = verdict?.i32(VERDICT.code);
  return code === undefined ? undefined : verdictOf(code, verdict?.text(VERDICT.chain));
}

/**
 * Goes on with the rule only where a set has what is in the registers from `from` on (inverted: has not); a map leaves
 * its value in `to`, a map of verdicts gives a verdict.
 */
export interface Lookup {
  readonly kind: "lookup";
  readonly set: string;
  readonly from: Register;
  readonly to?: Register | "verdict";
  readonly inverted?: true;
}

const LOOKUP_DATA = { set: 1, from: 2, to: 3, setId: 4, flags: 5 } as const;
const INVERTED = 1;

export const lookup: ExpressionKind<Lookup> = {
  name: "lookup",
  encode({ set, from, to, inverted }, writer) {
    writer.text(LOOKUP_DATA.set, set).u32(LOOKUP_DATA.from, registerNumber(from));
    if (to !== undefined) writer.u32(LOOKUP_DATA.to, to === "verdict" ? VERDICT_REGISTER : registerNumber(to));
    if (inverted) writer.u32(LOOKUP_DATA.flags, INVERTED);
  },
  decode(data) {
    const [set, from, to] = [data.text(LOOKUP_DATA.set), data.u32(LOOKUP_DATA.from), data.u32(LOOKUP_DATA.to)];
    if (set === undefined || from === undefined) return undefined;
    const target = to === VERDICT_REGISTER ? "verdict" : to === undefined ? undefined : registerOf(to);
    return {
      kind: "lookup",
      set,
      from: registerOf(from),
      ...(target !== undefined && { to: target }),
      ...((data.u32(LOOKUP_DATA.flags) ?? 0) & INVERTED ? { inverted: true as const } : {}),
    };
  },
  print({ set, from, to, inverted }, printer) {
    const found = printer.set(set);
    const key = printer.value(from, found.keyLength).text;
    if (to === undefined) printer.say(`${key} ${inverted ? "!= " : ""}${found.text}`);
    else if (to === "verdict") printer.say(`${key} vmap ${found.text}`);
    else printer.load(to, found.valueLength, { text: `${key} map ${found.text}` });
  },
};

/** Puts what is in registers into a set that packets may change. */
export interface Dynset {
  readonly kind: "dynset";
  readonly set: string;
  /** update also renews the timeout of what is there. */
  readonly operation: "add" | "update" | "delete";
  readonly from: Register;
  readonly value?: Register;
  /** Milliseconds; absent: the set's. */
  readonly timeout?: number;
}

/** enum nft_dynset_ops. */
const OPERATIONS = ["add", "update", "delete"] as const;
const DYNSET_DATA = { set: 1, setId: 2, operation: 3, from: 4, value: 5, timeout: 6, flags: 9 } as const;

export const dynset: ExpressionKind<Dynset> = {
  name: "dynset",
  encode({ set, operation, from, value, timeout }, writer) {
    writer
      .text(DYNSET_DATA.set, set)
      .u32(DYNSET_DATA.operation, OPERATIONS.indexOf(operation))
      .u32(DYNSET_DATA.from, registerNumber(from));
    if (value !== undefined) writer.u32(DYNSET_DATA.value, registerNumber(value));
    if (timeout !== undefined) writer.u64(DYNSET_DATA.timeout, BigInt(timeout));
  },
  decode(data) {
    const [set, from, value] = [data.text(DYNSET_DATA.set), data.u32(DYNSET_DATA.from), data.u32(DYNSET_DATA.value)];
    const operation = OPERATIONS[data.u32(DYNSET_DATA.operation) ?? -1];
    if (set === undefined || from === undefined || operation === undefined || data.u32(DYNSET_DATA.flags))
      return undefined;
    const timeout = Number(data.u64(DYNSET_DATA.timeout) ?? 0);
    return {
      kind: "dynset",
      set,
      operation,
      from: registerOf(from),
      ...(value !== undefined && { value: registerOf(value) }),
      ...(timeout > 0 && { timeout }),
    };
  },
  print({ set, operation, from, value, timeout }, printer) {
    const { keyLength, valueLength } = printer.set(set);
    const lifetime = timeout === undefined ? "" : ` timeout ${durationText(timeout)}`;
    const mapped = value === undefined ? "" : ` : ${printer.value(value, valueLength).text}`;
    printer.say(`${operation} @${set} { ${printer.value(from, keyLength).text}${lifetime}${mapped} }`);
  },
};
