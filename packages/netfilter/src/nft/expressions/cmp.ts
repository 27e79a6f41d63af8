import type { Hex } from "../hex.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

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

const DATA = { from: 1, operator: 2, value: 3 } as const;
/** NFTA_DATA_VALUE. */
export const DATA_VALUE = 1;

export const cmp: ExpressionKind<Cmp> = {
  name: "cmp",
  encode({ operator, from, value }, writer) {
    writer.u32(DATA.from, registerNumber(from)).u32(DATA.operator, OPERATORS.indexOf(operator));
    writer.nest(DATA.value, (inner) => inner.hex(DATA_VALUE, value));
  },
  decode(data) {
    const from = data.u32(DATA.from);
    const operator = OPERATORS[data.u32(DATA.operator) ?? -1];
    const value = data.nested(DATA.value)?.hex(DATA_VALUE);
    if (from === undefined || operator === undefined || value === undefined) return undefined;
    return { kind: "cmp", operator, from: registerOf(from), value };
  },
  print: ({ operator, from, value }, printer) => printer.compare(from, operator, value),
};
