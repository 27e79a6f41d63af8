import type { Clock } from "@fairlead/base";

/**
 * Makes something on demand, at most once in `ms` milliseconds: who asks meanwhile gets what was made last, and who
 * asks while it is being made waits for the same. What failed is made again.
 */
export function reused<T>(clock: Pick<Clock, "monotonic">, ms: number, make: () => T | Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  let until = 0;
  return () => {
    if (made !== undefined && clock.monotonic() < until) return made;
    const current = (async () => make())();
    made = current;
    until = Number.POSITIVE_INFINITY;
    const keep = (milliseconds: number) => {
      if (made === current) until = clock.monotonic() + milliseconds;
    };
    current.then(
      () => keep(ms),
      () => keep(0),
    );
    return current;
  };
}
