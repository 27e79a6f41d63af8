import type { SyncFollower } from "./follower.ts";

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
