import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds since the epoch, finer than Date.now. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

const PAUSE_MS = 20;

/**
 * How long a program may take to start, in milliseconds: an agent needs a second, control planes that start together on
 * a busy machine or in a slow guest more than five minutes.
 */
export const START_MS = 900_000;

/** The longest rest after a question that took long, in milliseconds. */
const LONGEST_REST_MS = 2_000;

/**
 * How long to rest after a question: as long as it took, so that asking leaves half of the time to what is asked about.
 * In a guest each question may be a process that takes a second.
 *
 * @param pauseMs the least
 */
export function restAfter(tookMs: number, pauseMs: number): number {
  return Math.max(pauseMs, Math.min(tookMs, LONGEST_REST_MS));
}

/**
 * Asks again and again until the answer is there.
 *
 * @param pauseMs between two questions; longer for those that cost another program
 */
export async function waitUntil<T>(
  what: string,
  withinMs: number,
  ask: () => Promise<T | undefined>,
  pauseMs: number = PAUSE_MS,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const asked = performance.now();
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`${what} did not happen within ${withinMs} ms`);
    await sleep(restAfter(performance.now() - asked, pauseMs));
  }
}
