/** Milliseconds since the epoch, finer than Date.now. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}
