import { NEUTRAL, TEST } from "../unknown-words.ts";
import type { Evaluate } from "./kind.ts";

/** No register holds more bytes. */
const LONGEST = 16;

/** What has no type may be a match, which can't be decided, or make no difference; otherwise its effect is unknown. */
export const unknown: Evaluate<"unknown"> = ({ text, effect, to }, { registers, undecidable }) => {
  const problem = `the tracer does not know "${text}"`;
  if (to !== undefined) registers.loadUnknown(to, LONGEST, problem);
  if (effect === "none" || NEUTRAL.test(text)) return undefined;
  if (effect !== "test" && !TEST.test(text)) throw undecidable(problem);
  registers.reason = problem;
  return { kind: "open", problem };
};
