import { nextTurn } from "@fairlead/base";
import { FamilySync } from "../sync/family-sync.ts";
import { SyncLoop } from "../sync/sync-loop.ts";
import { Syncer } from "../sync/syncer.ts";
import { createComponents } from "./components.ts";
import { followersOf } from "./followers.ts";
import type { AgentParts } from "./parts.ts";

/** A full sync without a reason comes once an hour, as upstream. */
const FULL_SYNC_MS = 3_600_000;

/** Milliseconds of work before the event loop gets its turn. */
const SLICE_MS = 10;

export type Assembled = ReturnType<typeof assemble>;

/** Puts the agent together; nothing runs yet. */
export function assemble(parts: AgentParts) {
  const { config, clock, log } = parts;
  const made = createComponents(parts);
  const { families, health, networks, metrics } = made;
  metrics.agent.modeFallback.set(parts.fallback === undefined ? 0 : 1);
  parts.progress?.follow((family) => health.progressed(family));
  const syncer = new Syncer({
    planner: made.planner,
    state: made.state,
    memory: () => made.keeper.memory,
    families: familySyncs(parts),
    familiesAtOnce: parts.familiesAtOnce,
    options: () => made.inputs.options(),
    concerned: networks && (() => networks.takeConcerned()),
    slicing: {
      clock,
      budget: SLICE_MS,
      turn() {
        for (const family of families) health.progressed(family);
        return nextTurn();
      },
    },
    followers: followersOf(parts, made),
    log,
  });
  const { minSyncPeriodMs: minInterval, syncPeriodMs: checkInterval } = config[config.mode];
  const loop = new SyncLoop({ minInterval, checkInterval, fullInterval: FULL_SYNC_MS }, syncer, clock);
  return { ...made, syncer, loop };
}

function familySyncs({ backends, config, clock, random }: AgentParts): readonly FamilySync[] {
  const { syncPeriodMs } = config[config.mode];
  const backoff = { first: Math.min(1_000, syncPeriodMs), most: syncPeriodMs };
  return Array.from(backends, ([family, backend]) => new FamilySync(family, backend, backoff, clock, random));
}
