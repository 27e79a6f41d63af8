import type { SyncFollower } from "../sync/follower.ts";
import type { ProxyHealth } from "./proxy-health.ts";

/** Tells the proxy's health which changes have reached the kernel. */
export function healthFollower(
  health: ProxyHealth,
  families: readonly Parameters<ProxyHealth["taken"]>[0][],
): SyncFollower {
  return {
    taken() {
      for (const family of families) health.taken(family);
    },
    ran({ family, outcome }) {
      if (outcome.kind === "synced" || outcome.kind === "unchanged") health.updated(family);
      if (outcome.kind === "failed") health.failed(family);
    },
  };
}
