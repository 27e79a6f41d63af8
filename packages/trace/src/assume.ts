import type { Assumption, Visit } from "./outcome.ts";
import type { List, Walk } from "./walk.ts";

/** A way that takes more for granted than this adds nothing. */
const MAX_ASSUMPTIONS = 10;

export function mayAssumeMore({ assumed }: Walk): boolean {
  let count = 0;
  for (let at = assumed; at !== undefined; at = at.before) count += 1;
  return count < MAX_ASSUMPTIONS;
}

/** The walk's assumptions with one more. */
export function withAssumption(
  before: List<Assumption> | undefined,
  visit: Visit,
  { problem, matched }: Pick<Assumption, "problem" | "matched">,
): List<Assumption> {
  return { item: { ...visit, problem, matched }, before };
}
