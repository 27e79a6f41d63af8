/** One run: objects to plans to both families' kernel side. */

import { type Clock, errorChainText, inSlices, type Slicing } from "@fairlead/base";
import type {
  ClusterState,
  Difference,
  DirtyServices,
  IPFamily,
  OwnershipMemory,
  PlanChange,
  Planner,
  PlannerOptions,
  PlanStep,
  ServiceKey,
} from "@fairlead/core";
import type { Log } from "../log.ts";
import { backoffDelay } from "./backoff.ts";
import type { FamilySync } from "./family-sync.ts";
import type { SyncFollower } from "./follower.ts";
import type { SyncKind, SyncLoopWork } from "./sync-loop.ts";

interface SyncerParts {
  readonly planner: Planner;
  readonly state: ClusterState;
  readonly memory: () => OwnershipMemory;
  readonly families: readonly FamilySync[];
  /** False where the families' tools wait for one another's lock: then one comes after the other. */
  readonly familiesAtOnce: boolean;
  /** What is planned for now, apart from the objects. */
  readonly options: () => PlannerOptions;
  /** Takes the only services that a new filter among them may decide differently; absent: all. */
  readonly concerned?: (() => Iterable<ServiceKey>) | undefined;
  /** Services that are to be planned though nothing of them changed. Default: none. */
  readonly due?: (() => readonly ServiceKey[]) | undefined;
  readonly slicing: Slicing;
  readonly followers: readonly SyncFollower[];
  readonly log: Log;
}

/**
 * One run: objects → plans, in slices → both families' kernel side. Backends read the plan, so it rests until they end.
 */
export class Syncer implements SyncLoopWork {
  readonly #parts: SyncerParts;
  readonly #differences: Differences;
  /** The plans do not follow from what was planned before: nothing was yet, or it broke off half way. */
  #planAll = true;
  /** What changed before a planning that failed: no follower of syncs has seen it. */
  #unseen: DirtyServices | undefined;

  constructor(parts: SyncerParts) {
    this.#parts = parts;
    this.#differences = new Differences(parts.slicing.clock, parts.log);
  }

  /** A sync comes soon. */
  prepare(): void {
    const { families, familiesAtOnce } = this.#parts;
    // What a second one read now would be old when its turn comes.
    for (const family of familiesAtOnce ? families : families.slice(0, 1)) family.prepare();
  }

  async sync(kind: SyncKind): Promise<number | undefined> {
    const { families, slicing } = this.#parts;
    // What arrived in the same turn of the event loop belongs together.
    await slicing.turn();
    if (kind === "full") for (const family of families) family.owesAll();
    await this.#notify((follower) => follower.taken?.());
    const began = slicing.clock.monotonic();
    this.prepare();
    const step = await this.#plan();
    const planning = slicing.clock.monotonic() - began;
    await this.#each((family) => this.#run(family, step?.changes.get(family.family), planning));
    const maintained: number[] = [];
    await this.#each(async (family) => {
      maintained.push(...(await this.#maintain(family)));
    });
    const waits = [...maintained, ...families.flatMap((family) => family.retryIn ?? [])];
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  async check(): Promise<boolean> {
    const { families, familiesAtOnce } = this.#parts;
    if (familiesAtOnce) return (await Promise.all(families.map((family) => this.#intact(family)))).every(Boolean);
    // The first that is not intact is reason enough to write: it need not wait for the other to be read.
    for (const family of families) if (!(await this.#intact(family))) return false;
    return true;
  }

  async #each(work: (family: FamilySync) => Promise<void>): Promise<void> {
    const { families, familiesAtOnce } = this.#parts;
    if (familiesAtOnce) await Promise.all(families.map(work));
    else for (const family of families) await work(family);
  }

  async #plan(): Promise<PlanStep | undefined> {
    const { planner, state, memory, options, concerned, due, slicing, families, log } = this.#parts;
    const taken = state.takeDirty();
    const dirty = bothDirty(this.#unseen, { ...taken, services: new Set([...taken.services, ...(due?.() ?? [])]) });
    this.#unseen = dirty;
    const services = this.#planAll ? "all" : dirty.services;
    this.#planAll = true;
    try {
      planner.setOptions(options(), concerned?.());
      const step = await inSlices(planner.replan(state, services, memory()), slicing);
      await slicing.turn();
      this.#planAll = false;
      this.#unseen = undefined;
      await this.#notify((follower) => follower.planned?.(step, dirty));
      return step;
    } catch (error) {
      for (const family of families) family.owesAll();
      log.error("Planning failed; previous rules stay in effect, retrying at the next sync", {
        error: errorChainText(error),
      });
      return undefined;
    }
  }

  async #run(family: FamilySync, change: PlanChange | undefined, planning: number): Promise<void> {
    if (this.#planAll) return;
    const plan = this.#parts.planner.plan(family.family);
    const outcome = await family.run(plan, change, planning);
    await this.#notify((follower) => follower.ran?.({ family: family.family, plan, change, outcome }));
  }

  /** One follower's failure is no reason to keep the others, or the next sync, from their work. */
  async #notify(call: (follower: SyncFollower) => void | Promise<void>): Promise<void> {
    const { followers, slicing, log } = this.#parts;
    let began = slicing.clock.monotonic();
    for (const follower of followers) {
      try {
        await call(follower);
      } catch (error) {
        log.error("Post-sync step failed; rules are in place, retrying at the next sync", {
          error: errorChainText(error),
        });
      }
      if (slicing.clock.monotonic() - began < slicing.budget) continue;
      await slicing.turn();
      began = slicing.clock.monotonic();
    }
  }

  async #maintain(family: FamilySync): Promise<readonly number[]> {
    try {
      const next = await family.maintain();
      return next === undefined ? [] : [next];
    } catch (error) {
      const fields = { ipFamily: family.family, error: errorChainText(error) };
      this.#parts.log.warn("Failed to remove stale rules; scheduling a full sync", fields);
      await this.#notify((follower) => follower.unmaintained?.(family.family));
      return [];
    }
  }

  async #intact({ family, backend, retryIn }: FamilySync): Promise<boolean> {
    // It is written anyway.
    if (retryIn !== undefined) return true;
    const { planner, log } = this.#parts;
    try {
      const difference = await backend.difference(planner.plan(family));
      if (difference !== undefined) return !this.#differences.found(family, difference);
      this.#differences.none(family);
    } catch (error) {
      log.warn("Cannot check the rules; they stay in effect, checking again after syncPeriod", {
        ipFamily: family,
        error: errorChainText(error),
      });
    }
    return true;
  }
}

/** What is dirty by one of two takes, or by both. */
function bothDirty(before: DirtyServices | undefined, after: DirtyServices): DirtyServices {
  if (before === undefined) return after;
  const triggerTimes = new Map<ServiceKey, readonly number[]>(before.triggerTimes);
  for (const [key, times] of after.triggerTimes) triggerTimes.set(key, [...(triggerTimes.get(key) ?? []), ...times]);
  return { services: new Set([...before.services, ...after.services]), triggerTimes };
}

/** Milliseconds for which no further line is logged where rules are changed again and again. */
const QUIET_MS = 10_000;
/** Milliseconds until rules are written again that did not become what was written, the first time and at most. */
const BACKOFF = { first: 60_000, most: 3_600_000 } as const;
/** Parts of a difference that a line names. */
const MOST_NAMED = 5;

interface OpenDifference {
  readonly text: string;
  /** How often writing did not help. */
  readonly inVain: number;
  /** It is being written; else that waits until then, on the monotonic clock. */
  readonly waitsUntil?: number;
}

/**
 * What checks found, by family. A check follows each writing: where it finds the same again and no other program is
 * known to have changed the rules, writing did not help, and is tried again later and later.
 */
export class Differences {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #log: Log;
  readonly #found = new Map<IPFamily, OpenDifference>();
  readonly #quietUntil = new Map<IPFamily, number>();

  constructor(clock: Pick<Clock, "monotonic">, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  none(family: IPFamily): void {
    this.#found.delete(family);
  }

  /** @returns whether it is to be written again now */
  found(family: IPFamily, difference: Difference): boolean {
    const text = differenceText(difference);
    const before = this.#found.get(family);
    const now = this.#clock.monotonic();
    // Another program that is named changed the rules after the writing, which helped until then.
    const isChangedAgain = (difference.by ?? []).length > 0;
    if (difference.repaired || before?.text !== text || isChangedAgain) {
      this.#report(family, difference);
      if (difference.repaired) this.none(family);
      else this.#found.set(family, { text, inVain: 0 });
      return !difference.repaired;
    }
    if (before.waitsUntil === undefined) this.#wait(family, before);
    else if (now >= before.waitsUntil) {
      this.#found.set(family, { text, inVain: before.inVain });
      return true;
    }
    return false;
  }

  #wait(family: IPFamily, { text, inVain }: OpenDifference): void {
    const delay = backoffDelay(inVain + 1, BACKOFF, 1);
    this.#found.set(family, { text, inVain: inVain + 1, waitsUntil: this.#clock.monotonic() + delay });
    this.#log.error(
      "Rules still differ from the desired state after a full sync; services may be unavailable, retrying",
      {
        ipFamily: family,
        differs: text,
        retryIn: `${delay}ms`,
      },
    );
  }

  #report(family: IPFamily, difference: Difference): void {
    const now = this.#clock.monotonic();
    const isQuiet = now < (this.#quietUntil.get(family) ?? 0);
    this.#quietUntil.set(family, now + QUIET_MS);
    if (isQuiet) return;
    const { by = [], repaired } = difference;
    this.#log.warn(
      repaired
        ? "Rules differed from the desired state; the differences are repaired"
        : "Rules differ from the desired state; full sync scheduled",
      { ipFamily: family, differs: differenceText(difference), ...(by.length > 0 && { by: by.join(", ") }) },
    );
  }
}

function differenceText({ what }: Difference): string {
  const more = what.length > MOST_NAMED ? [`${what.length - MOST_NAMED} more`] : [];
  return [...what.slice(0, MOST_NAMED), ...more].join("; ");
}
