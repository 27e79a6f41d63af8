import type { Timers } from "@fairlead/base";

/** The answer, or an Error where it does not come in time. What comes later is ignored. */
export function within<T>(timers: Timers, ms: number, answer: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const cancel = timers.after(ms, () => reject(new Error(`no answer within ${ms / 1000} s`)));
  answer.then(resolve, reject).finally(cancel);
  return promise;
}
