import { followed } from "../verdict.ts";
import type { Evaluate } from "./kind.ts";

export const immediate: Evaluate<"immediate"> = (expression, { registers }) => {
  if ("verdict" in expression) return followed(expression.verdict);
  registers.load(expression.to, expression.value);
  return undefined;
};
