/** What follows syncs: once after the first, when all is tidy, or with a line in the log. */

import { type Clock, errorChainText, nextTurn } from "@fairlead/base";
import type { DirtyServices, ForwardingPlan, IPFamily, PlanChange, PlanStep, SyncReport } from "@fairlead/core";
import type { Log } from "../log.ts";
import type { FamilyOutcome } from "./family-sync.ts";

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
  planned?(step: PlanStep, dirty: DirtyServices): void | Promise<void>;
  /** The kernel has taken a family's plan, or has not. The plan holds still until this resolves. */
  ran?(run: FamilyRun): void | Promise<void>;
  /** What has to wait could not be looked after in a family. */
  unmaintained?(family: IPFamily): void;
}

/** Calls `then` once, after the first sync of any family that is complete. */
export function afterStart(then: () => void): SyncFollower {
  let started = false;
  return {
    ran({ outcome }) {
      if (started || outcome.kind !== "synced") return;
      started = true;
      then();
    },
  };
}

/** Lines about syncs: the first one that serves, every failure, every recovery; the others at verbosity 2. */
export function syncLog(log: Log): SyncFollower {
  const serving = new Set<IPFamily>();
  const reported = new Map<IPFamily, ReadonlySet<string>>();
  /** Each refused object once, for as long as full syncs find it refused. */
  const refusals = (family: IPFamily, { kind, refused = [] }: SyncReport) => {
    const before = reported.get(family) ?? new Set();
    for (const object of refused) {
      if (before.has(object)) continue;
      log.error("The kernel refused an object; all others are in place, the next full sync tries it again", {
        ipFamily: family,
        object,
      });
    }
    reported.set(family, new Set(kind === "full" ? refused : [...before, ...refused]));
  };
  return {
    ran(run) {
      const { family, outcome } = run;
      if (outcome.kind === "synced") {
        refusals(family, outcome.report);
        const fields = { ipFamily: family, kind: outcome.report.kind, ...figures(run), ...written(run) };
        if (serving.has(family)) log.verbose(2, "Synced", fields);
        else log.info("Rules are in place", fields);
        serving.add(family);
      } else if (outcome.kind === "failed") {
        serving.delete(family);
        log.error("Sync failed; previous rules stay in effect, full sync scheduled", {
          ipFamily: family,
          kind: outcome.sync,
          error: errorChainText(outcome.error),
          milliseconds: Math.round(outcome.milliseconds),
          retryMilliseconds: Math.round(outcome.retryIn),
        });
      }
    },
  };
}

/** A start is over by then, and what it read is collected. */
const REST_MS = 30_000;

/** Calls `tidy` after syncs, some time after the first that it has not followed yet; never while nothing is synced. */
export function tidying(clock: Clock, tidy: () => void): SyncFollower {
  let waiting = false;
  return {
    ran({ outcome }) {
      if (waiting || outcome.kind !== "synced") return;
      waiting = true;
      clock.after(REST_MS, () => {
        waiting = false;
        tidy();
      });
    },
  };
}

/** Carries signs of progress from the depth of syncs, which knows nothing of health, to their followers. */
export class Progress {
  #notify: (family: IPFamily) => void = () => {};

  follow(onProgress: (family: IPFamily) => void): void {
    this.#notify = onProgress;
  }

  /** What a backend of the family calls between steps: a turn for the event loop, and a sign that it gets on. */
  turnOf(family: IPFamily): () => Promise<void> {
    return () => {
      this.#notify(family);
      return nextTurn();
    };
  }
}

function figures({ plan, change, outcome }: FamilyRun) {
  const milliseconds = outcome.kind === "synced" ? Math.round(outcome.milliseconds) : 0;
  return { servicePorts: plan.groups.size, changed: change?.groups.size ?? 0, milliseconds };
}

function written({ outcome }: FamilyRun): Record<string, number> {
  if (outcome.kind !== "synced") return {};
  return Object.fromEntries(Object.entries(outcome.report.objects).map(([name, { written }]) => [name, written]));
}
