/**
 * Keeps long work from blocking the event loop: gives a promise to await once the slice is used up, nothing before.
 * The real time counts here, never a virtual one, since it is the processor's time that others wait for.
 */
export type Breathe = () => Promise<void> | undefined;

/** @param sliceMilliseconds how long work may go on at a stretch */
export function breather(sliceMilliseconds = 10): Breathe {
  let since = performance.now();
  return () => {
    if (performance.now() - since < sliceMilliseconds) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        since = performance.now();
        resolve();
      });
    });
  };
}
