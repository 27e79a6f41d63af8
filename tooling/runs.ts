const { FAIRLEAD_RUNS = "1" } = process.env;

/**
 * How many runs a property gets: few where developers wait for the answer, FAIRLEAD_RUNS times as many in long runs
 * (`pnpm e2e --all`).
 *
 * @param short runs in `pnpm check` and `npm test`
 */
export function runs(short: number): number {
  const factor = Number(FAIRLEAD_RUNS);
  if (!(factor > 0)) throw new RangeError(`FAIRLEAD_RUNS=${FAIRLEAD_RUNS}: give a number above 0, such as 20`);
  return Math.ceil(short * factor);
}
