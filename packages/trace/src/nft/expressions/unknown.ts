import { NEUTRAL, TEST } from "../unknown-words.ts";
import type { Evaluate } from "./kind.ts";

/** What has no type may be a match, which can't be decided, or make no difference; else nobody knows. */
export const unknown: Evaluate<"unknown"> = ({ text }, { registers, undecidable }) => {
  const problem = `the tracer does not know "${text}"`;
  if (NEUTRAL.test(text)) return undefined;
  if (!TEST.test(text)) throw undecidable(problem);
  registers.reason = problem;
  return { kind: "open", problem };
};
