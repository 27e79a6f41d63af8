import type { Timers } from "./clock.ts";

/**
 * Resolves after `ms` milliseconds (at once where that is 0 or less), or as soon as `signal` aborts; never rejects, the
 * caller looks at the signal.
 */
export function sleep(timers: Timers, ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      cancel();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const cancel = timers.after(ms, wake);
    signal?.addEventListener("abort", wake);
  });
}
