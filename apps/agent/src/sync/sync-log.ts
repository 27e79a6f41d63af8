import { errorChainText } from "@fairlead/base";
import type { IPFamily, SyncReport } from "@fairlead/core";
import type { Log } from "../log/log.ts";
import type { FamilyRun, SyncFollower } from "./follower.ts";

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

function figures({ plan, change, outcome }: FamilyRun) {
  const milliseconds = outcome.kind === "synced" ? Math.round(outcome.milliseconds) : 0;
  return { servicePorts: plan.groups.size, changed: change?.groups.size ?? 0, milliseconds };
}

function written({ outcome }: FamilyRun): Record<string, number> {
  if (outcome.kind !== "synced") return {};
  return Object.fromEntries(Object.entries(outcome.report.objects).map(([name, { written }]) => [name, written]));
}
