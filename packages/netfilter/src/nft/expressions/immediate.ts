import type { Attributes } from "../../netlink/reader.ts";
import type { AttributeWriter } from "../../netlink/writer.ts";
import type { Hex } from "../hex.ts";
import { DATA_VALUE } from "./cmp.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf, VERDICT_REGISTER } from "./registers.ts";
import { type Verdict, verdictCode, verdictOf, verdictText } from "./verdict.ts";

/** Puts a constant into a register, or gives a verdict. */
export type Immediate =
  | { readonly kind: "immediate"; readonly to: Register; readonly value: Hex }
  | { readonly kind: "immediate"; readonly verdict: Verdict };

const DATA = { to: 1, data: 2 } as const;
/** NFTA_DATA_VERDICT. */
const DATA_VERDICT = 2;
/** NFTA_VERDICT_CODE and NFTA_VERDICT_CHAIN. */
const VERDICT = { code: 1, chain: 2 } as const;

export const immediate: ExpressionKind<Immediate> = {
  name: "immediate",
  encode(expression, writer) {
    if ("verdict" in expression) {
      writer.u32(DATA.to, VERDICT_REGISTER).nest(DATA.data, (inner) => encodeVerdict(expression.verdict, inner));
      return;
    }
    writer.u32(DATA.to, registerNumber(expression.to));
    writer.nest(DATA.data, (inner) => inner.hex(DATA_VALUE, expression.value));
  },
  decode(data) {
    const to = data.u32(DATA.to);
    const inner = data.nested(DATA.data);
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
