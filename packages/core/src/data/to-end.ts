/** Runs a generator's steps in one go, for those who have nothing else to do between. */
export function toEnd<T>(steps: Iterator<void, T, void>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
