import type { IPFamily } from "@fairlead/core";
import type { Figures, Suite } from "../specs/spec.ts";

/** What came of one spec on one cluster. */
export interface Outcome {
  readonly name: string;
  readonly suite: Suite;
  readonly mode: string;
  /** Absent in specs that are not run for each. */
  readonly family?: IPFamily;
  readonly ms: number;
  readonly result: Result;
}

export type Result =
  | { readonly kind: "passed"; readonly figures?: Figures }
  | { readonly kind: "skipped"; readonly reason: string }
  | { readonly kind: "failed"; readonly message: string; readonly artifacts?: string };

export function titleOf({ name, family }: Pick<Outcome, "name" | "family">): string {
  return family === undefined ? name : `${name} [${family}]`;
}

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function count(outcomes: readonly Outcome[]): Counts {
  const of = (kind: Result["kind"]) => outcomes.filter(({ result }) => result.kind === kind).length;
  return { passed: of("passed"), failed: of("failed"), skipped: of("skipped") };
}
