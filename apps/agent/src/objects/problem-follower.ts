import type { SyncFollower } from "../sync/follower.ts";
import type { ProblemLog } from "./problem-log.ts";

/** Reports what planning found wrong between objects; it reports each problem once. */
export function problemFollower(problems: ProblemLog): SyncFollower {
  return {
    planned(step) {
      problems.step(step.problems);
    },
  };
}
