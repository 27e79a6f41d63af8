import { setTimeout as sleep } from "node:timers/promises";

const PAUSE_MS = 20;

/**
 * How long a test waits for what comes at once on a quiet machine: no measure of speed (the fault suite measures), so a machine that
 * is busy with other work passes as well.
 */
export const PATIENCE_MS = 30_000;

/**
 * Asks again and again until the answer is there.
 *
 * @param pauseMs between two questions; longer for those that cost somebody else
 * @throws Error that says what never came
 */
export async function waitUntil<T>(
  what: string,
  withinMs: number,
  ask: () => Promise<T | undefined>,
  pauseMs: number = PAUSE_MS,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`${what} did not happen within ${withinMs} ms`);
    await sleep(pauseMs);
  }
}
