import type { Clock } from "@fairlead/base";

/** Connecting, asking for a sign of life, silence, reports, watchdogs, and what the server doesn't have. */
const NEVER_OUT: ReadonlySet<number> = new Set([10_000, 15_000, 30_000, 60_000, 65_000, 70_000, 90_000, 600_000]);

/** Back-offs take no time; other timers never run out. */
export function instantClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    monotonic: () => now,
    after: (delay, run) => {
      if (NEVER_OUT.has(delay)) return () => {};
      now += delay;
      const immediate = setImmediate(run);
      return () => clearImmediate(immediate);
    },
  };
}
