import type { SyncKind } from "../sync/sync-loop.ts";
import type { Agent, AgentParts } from "./parts.ts";
import type { Prerequisite } from "./readiness.ts";

/** All prerequisites are there, or do not come: the first sync, and from now on the others. */
export function beginSyncs(
  { clock, log, nodeName }: AgentParts,
  { families, health, metrics, loop, state }: Agent,
  without: readonly Prerequisite[],
): void {
  if (without.length > 0) {
    log.warn("Node object not received; serving without its zone and with the kernel's source address", {
      node: nodeName,
      missing: without.join(","),
    });
  }
  log.verbose(2, "All objects received; writing rules", { serviceChanges: state.serviceChanges.total });
  for (const family of families) {
    health.started(family);
    metrics.sync.lastQueued.set({ ip_family: family }, clock.now() / 1000);
  }
  loop.start();
}

/** Has the loop run a sync when its time comes; health and metrics count from now on. */
export function requestSync({ clock }: AgentParts, { families, health, metrics, loop }: Agent, kind: SyncKind): void {
  for (const family of families) {
    health.queued(family);
    metrics.sync.lastQueued.set({ ip_family: family }, clock.now() / 1000);
  }
  loop.request(kind);
}
