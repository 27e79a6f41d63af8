import type { DirtyServices, ForwardingPlan, IPFamily, PlanChange, PlanStep } from "@fairlead/core";
import type { FamilyOutcome } from "./family-sync.ts";

/** One family's part of a run. */
export interface FamilyRun {
  readonly family: IPFamily;
  readonly plan: ForwardingPlan;
  readonly change: PlanChange | undefined;
  readonly outcome: FamilyOutcome;
}

/** What follows from syncs alongside the rules. Called in this order in each run. */
export interface SyncFollower {
  /** A run begins, with all changes that are known. */
  taken?(): void;
  /** The plans are new. */
  planned?(step: PlanStep, dirty: DirtyServices): void | Promise<void>;
  /** The kernel has taken a family's plan, or has not. The plan holds still until this resolves. */
  ran?(run: FamilyRun): void | Promise<void>;
  /** What has to wait could not be looked after in a family. */
  unmaintained?(family: IPFamily): void;
}
