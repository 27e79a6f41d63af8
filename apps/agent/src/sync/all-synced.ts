import type { IPFamily } from "@fairlead/core";
import type { SyncFollower } from "./follower.ts";

export interface AllSynced {
  readonly follower: SyncFollower;
  /** Resolves when each family has been written once. */
  readonly promise: Promise<void>;
}

/** Waits for the first sync of all families. */
export function allSynced(families: readonly IPFamily[]): AllSynced {
  const { promise, resolve } = Promise.withResolvers<void>();
  const waiting = new Set(families);
  const follower: SyncFollower = {
    ran({ family, outcome }) {
      if (outcome.kind === "synced" && waiting.delete(family) && waiting.size === 0) resolve();
    },
  };
  return { follower, promise };
}
