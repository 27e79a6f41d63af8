/** The doctor's table: everything that is looked at, in the order in which it matters. */

import { clusterRows } from "./cluster.ts";
import type { NodeFacts } from "./facts.ts";
import { networkRows } from "./networks.ts";
import { nodeRows } from "./node.ts";
import type { AdviceOf, Line } from "./table.ts";

const ROWS = [...nodeRows, ...networkRows, ...clusterRows] as const;

/** Each advice that a doctor may give, by name. */
export type AdviceName = AdviceOf<(typeof ROWS)[number]>;

/** One thing that was looked at. */
export type Diagnosis = Line<AdviceName>;

export const ADVICE_NAMES: readonly AdviceName[] = [
  ...new Set(ROWS.flatMap((row): readonly AdviceName[] => row.advices)),
];

export function diagnose(facts: NodeFacts): readonly Diagnosis[] {
  return ROWS.flatMap((row): readonly Diagnosis[] => row.lines(facts));
}
