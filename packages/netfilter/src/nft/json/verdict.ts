import { isObject, stringOf, valueAt } from "@fairlead/base";
import type { Verdict } from "../expressions/verdict.ts";

const SIMPLE = ["accept", "drop", "return", "continue"] as const;

/** @returns undefined: it is not a verdict */
export function verdictIn(json: unknown): Verdict | undefined {
  if (!isObject(json)) return undefined;
  const simple = SIMPLE.find((kind) => Object.hasOwn(json, kind));
  if (simple !== undefined) return { kind: simple };
  for (const kind of ["jump", "goto"] as const) {
    const chain = stringOf(valueAt(json, kind, "target"));
    if (chain !== undefined) return { kind, chain };
  }
  return undefined;
}
