/** Runs work that comes in slices to its end, without a pause. */
export function toEnd<T>(slices: Generator<void, T, void>): T {
  for (;;) {
    const { done, value } = slices.next();
    if (done === true) return value;
  }
}
