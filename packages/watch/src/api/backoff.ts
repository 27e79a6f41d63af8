import type { Clock } from "../clock.ts";

/** client-go's reflector: 800 ms, doubled up to 30 s, each stretched by up to as much again. */
const first = 800;
const longest = 30_000;
/** Without a failure for this long the next one starts from the beginning. */
const healthyAfter = 120_000;

/** Gives the milliseconds to wait after a failure. */
export function backoff(clock: Clock, random: () => number): () => number {
  let next = first;
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    if (clock.now() - last > healthyAfter) next = first;
    last = clock.now();
    const delay = next * (1 + random());
    next = Math.min(next * 2, longest);
    return delay;
  };
}
