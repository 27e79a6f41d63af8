import type { Clock } from "@fairlead/base";
import type { SyncFollower } from "./follower.ts";

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
