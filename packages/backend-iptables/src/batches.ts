/** Cuts a sequence into arrays of at most `size`, the last one shorter; an empty sequence gives none. */
export function* batches<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let batch: T[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Runs a generator's steps to its result, with a turn of the event loop every few of them. */
export async function inSlices<T>(steps: Generator<unknown, T>, breathe: () => Promise<void>): Promise<T> {
  const STEPS_IN_A_ROW = 64;
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (count % STEPS_IN_A_ROW === 0) await breathe();
  }
}
