import { isKnown, mayBe } from "../registers.ts";
import { BREAK } from "../rule-context.ts";
import type { Evaluate, ExpressionOf } from "./kind.ts";

export const cmp: Evaluate<"cmp"> = ({ operator, from, value }, { registers }) => {
  const held = registers.read(from, value.length / 2);
  if (isKnown(held)) return holds(operator, held, value) ? undefined : BREAK;
  const isEquality = operator === "==" || operator === "!=";
  if (!isEquality || mayBe(held, value)) return { kind: "open", problem: registers.reason };
  return operator === "!=" ? undefined : BREAK;
};

/** Bytes are compared from the first on (memcmp), as hexadecimal digits of one case are. */
function holds(operator: ExpressionOf<"cmp">["operator"], held: string, value: string): boolean {
  switch (operator) {
    case "==":
      return held === value;
    case "!=":
      return held !== value;
    case "<":
      return held < value;
    case "<=":
      return held <= value;
    case ">":
      return held > value;
    case ">=":
      return held >= value;
  }
}
