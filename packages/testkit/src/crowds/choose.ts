import type { Outcome } from "@fairlead/trace";

/**
 * One of the ways of a packet, as often as the tracer says that it takes it.
 *
 * @param random from 0 to before 1
 */
export function choose(outcomes: readonly Outcome[], random: number): Outcome {
  let left = random;
  for (const outcome of outcomes) {
    left -= outcome.probability;
    if (left < 0) return outcome;
  }
  const last = outcomes.at(-1);
  if (last === undefined) throw new Error("the packet takes no way");
  return last;
}
