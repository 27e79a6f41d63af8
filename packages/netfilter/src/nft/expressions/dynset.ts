import { durationText } from "./duration.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

/** Puts what is in registers into a set that packets may change. */
export interface Dynset {
  readonly kind: "dynset";
  readonly set: string;
  /** update also renews the timeout of what is there. */
  readonly operation: "add" | "update" | "delete";
  readonly from: Register;
  /** Where a map's value is. */
  readonly value?: Register;
  /** Milliseconds; absent: the set's. */
  readonly timeout?: number;
}

/** enum nft_dynset_ops. */
const OPERATIONS = ["add", "update", "delete"] as const;
const DATA = { set: 1, setId: 2, operation: 3, from: 4, value: 5, timeout: 6, flags: 9 } as const;

export const dynset: ExpressionKind<Dynset> = {
  name: "dynset",
  encode({ set, operation, from, value, timeout }, writer) {
    writer.text(DATA.set, set).u32(DATA.operation, OPERATIONS.indexOf(operation)).u32(DATA.from, registerNumber(from));
    if (value !== undefined) writer.u32(DATA.value, registerNumber(value));
    if (timeout !== undefined) writer.u64(DATA.timeout, BigInt(timeout));
  },
  decode(data) {
    const [set, from, value] = [data.text(DATA.set), data.u32(DATA.from), data.u32(DATA.value)];
    const operation = OPERATIONS[data.u32(DATA.operation) ?? -1];
    if (set === undefined || from === undefined || operation === undefined || data.u32(DATA.flags)) return undefined;
    const timeout = Number(data.u64(DATA.timeout) ?? 0);
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
