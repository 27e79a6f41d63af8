import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf, VERDICT_REGISTER } from "./registers.ts";

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

const DATA = { set: 1, from: 2, to: 3, setId: 4, flags: 5 } as const;
const INVERTED = 1;

export const lookup: ExpressionKind<Lookup> = {
  name: "lookup",
  encode({ set, from, to, inverted }, writer) {
    writer.text(DATA.set, set).u32(DATA.from, registerNumber(from));
    if (to !== undefined) writer.u32(DATA.to, to === "verdict" ? VERDICT_REGISTER : registerNumber(to));
    if (inverted) writer.u32(DATA.flags, INVERTED);
  },
  decode(data) {
    const [set, from, to] = [data.text(DATA.set), data.u32(DATA.from), data.u32(DATA.to)];
    if (set === undefined || from === undefined) return undefined;
    const target = to === VERDICT_REGISTER ? "verdict" : to === undefined ? undefined : registerOf(to);
    return {
      kind: "lookup",
      set,
      from: registerOf(from),
      ...(target !== undefined && { to: target }),
      ...((data.u32(DATA.flags) ?? 0) & INVERTED ? { inverted: true as const } : {}),
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
