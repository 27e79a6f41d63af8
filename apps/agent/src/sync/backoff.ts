/** Exponential back-off with jitter. */
export interface BackoffLimits {
  /** Milliseconds before the first retry, before jitter. */
  readonly first: number;
  /** No delay is longer than this. */
  readonly most: number;
}

/**
 * The delay before retry number `attempt` (from 1): it doubles from `first` up to `most`, and the upper half of it is
 * random, so that the agents of a cluster that failed together do not retry together.
 *
 * @param random a number in [0, 1)
 */
export function backoffDelay(attempt: number, limits: BackoffLimits, random: number): number {
  const ceiling = Math.min(limits.most, limits.first * 2 ** Math.min(attempt - 1, 30));
  return ceiling / 2 + (ceiling / 2) * random;
}
