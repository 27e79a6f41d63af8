import { setTimeout as sleep } from "node:timers/promises";
import { restAfter } from "@fairlead/lab/agent/wait-until";

/**
 * How long a change may take until clients see it, API server and endpoint slice controller included: a second, but for
 * a slow guest on a busy machine.
 */
const PATIENCE_MS = 90_000;
const PAUSE_MS = 50;

/**
 * Asks until there is nothing left to complain of.
 *
 * @throws Error with the last complaint when that takes too long
 */
export async function until(
  what: string,
  complaint: () => Promise<string | undefined>,
  patienceMs: number = PATIENCE_MS,
): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const asked = performance.now();
    const last = await complaint();
    if (last === undefined) return;
    if (performance.now() > deadline) throw new Error(`wanted ${what}; came ${last}`);
    await sleep(restAfter(performance.now() - asked, PAUSE_MS));
  }
}
