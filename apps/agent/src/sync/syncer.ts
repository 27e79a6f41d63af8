import type {
  ClusterState,
  DirtyServices,
  ForwardingPlan,
  IPFamily,
  OwnershipMemory,
  PlanChange,
  Planner,
  PlannerOptions,
  PlanStep,
} from "@fairlead/core";
import { describeError, type Log } from "../log/log.ts";
import type { FamilyOutcome, FamilySync } from "../pacing/family-sync.ts";
import { inSlices, type Slicing } from "../pacing/slices.ts";
import type { SyncKind, SyncLoopWork } from "../pacing/sync-loop.ts";

/** One family's part of a run. */
export interface FamilyRun {
  readonly family: IPFamily;
  readonly plan: ForwardingPlan;
  readonly change: PlanChange | undefined;
  readonly outcome: FamilyOutcome;
}

/** What follows from syncs beside the rules. Called in this order in each run. */
export interface SyncFollower {
  /** A run begins, with all changes that are known. */
  taken?(): void;
  /** The plans are new. */
  planned?(step: PlanStep, dirty: DirtyServices): void;
  /** The kernel has taken a family's plan, or has not. The plan holds still until this resolves. */
  ran?(run: FamilyRun): void | Promise<void>;
}

export interface SyncerParts {
  readonly planner: Planner;
  readonly state: ClusterState;
  readonly memory: () => OwnershipMemory;
  readonly families: readonly FamilySync[];
  /** What is planned for now, apart from the objects. */
  readonly options: () => PlannerOptions;
  readonly slicing: Slicing;
  readonly followers: readonly SyncFollower[];
  readonly log: Log;
}

/** One run: objects → plans, in slices → both families' kernel side. Backends read the plan, so it rests until they end. */
export class Syncer implements SyncLoopWork {
  readonly #parts: SyncerParts;
  /** The plans do not follow from what was planned before: nothing was yet, or it broke off half way. */
  #planAll = true;

  constructor(parts: SyncerParts) {
    this.#parts = parts;
  }

  async sync(kind: SyncKind): Promise<number | undefined> {
    const { families, slicing, followers } = this.#parts;
    // What arrived in the same turn of the event loop belongs together.
    await slicing.pause();
    if (kind === "full") for (const family of families) family.owesAll();
    for (const follower of followers) follower.taken?.();
    const step = await this.#plan();
    await Promise.all(families.map((family) => this.#run(family, step?.changes.get(family.family))));
    const waits = families.flatMap((family) => family.retryIn ?? []);
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  async check(): Promise<boolean> {
    const checks = await Promise.all(this.#parts.families.map((family) => this.#intact(family)));
    return checks.every((intact) => intact);
  }

  async #plan(): Promise<PlanStep | undefined> {
    const { planner, state, memory, options, slicing, followers, families, log } = this.#parts;
    const dirty = state.takeDirty();
    const services = this.#planAll ? "all" : dirty.services;
    this.#planAll = true;
    try {
      planner.setOptions(options());
      const step = await inSlices(planner.replan(state, services, memory()), slicing);
      for (const follower of followers) follower.planned?.(step, dirty);
      this.#planAll = false;
      return step;
    } catch (error) {
      for (const family of families) family.owesAll();
      log.error("Planning failed; everything is planned again with the next sync", { error: describeError(error) });
      return undefined;
    }
  }

  async #run(family: FamilySync, change: PlanChange | undefined): Promise<void> {
    if (this.#planAll) return;
    const plan = this.#parts.planner.plan(family.family);
    const outcome = await family.run(plan, change);
    for (const follower of this.#parts.followers) {
      await follower.ran?.({ family: family.family, plan, change, outcome });
    }
  }

  async #intact({ family, backend }: FamilySync): Promise<boolean> {
    const { planner, log } = this.#parts;
    try {
      const intact = await backend.intact(planner.plan(family));
      if (!intact)
        log.warn("Rules are missing: somebody removed them; writing all of them again", { ipFamily: family });
      return intact;
    } catch (error) {
      log.warn("Cannot look whether the rules are still there", { ipFamily: family, error: describeError(error) });
      return true;
    }
  }
}
