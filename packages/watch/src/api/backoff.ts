import type { Clock } from "@fairlead/base";

/** Milliseconds: the first wait, and what it is doubled up to. */
export interface BackoffRange {
  readonly first: number;
  readonly longest: number;
}

/** Between attempts at a server that answers, as in client-go's reflector. */
export const CLIENT_GO_RANGE: BackoffRange = { first: 800, longest: 30_000 };
/**
 * Where nothing answers, an attempt costs little, and every second counts once the server is back: asked every 5
 * to 10 s, as kubelet asks for its lease every 10 s. client-go would wait for up to a minute here.
 */
export const CONNECT_RANGE: BackoffRange = { first: 800, longest: 5_000 };

/** Without a failure for this long the next one starts from the beginning. */
const HEALTHY_AFTER = 120_000;

/** Gives the milliseconds to wait after a failure; each is stretched by up to as much again. */
export function backoff(
  clock: Pick<Clock, "monotonic">,
  random: () => number,
  { first, longest }: BackoffRange,
): () => number {
  let next = first;
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    if (clock.monotonic() - last > HEALTHY_AFTER) next = first;
    last = clock.monotonic();
    const delay = next * (1 + random());
    next = Math.min(next * 2, longest);
    return delay;
  };
}
