/** Runs a generator's steps to its result, with a turn of the event loop every few of them. */
export async function inSlices<T>(steps: Generator<unknown, T>, breathe: () => Promise<void>): Promise<T> {
  const STEPS_IN_A_ROW = 64;
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (count % STEPS_IN_A_ROW === 0) await breathe();
  }
}
