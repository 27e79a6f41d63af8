import { setTimeout as sleep } from "node:timers/promises";
import { PATIENCE_MS } from "@fairlead/base/testing";
import { restAfter } from "@fairlead/lab/support/wait-until";

const PAUSE_MS = 50;

/**
 * Asks until there is nothing left to complain of.
 *
 * @param patienceMs a change takes a second until clients see it, API server and endpoint slice controller included;
 *   the default is for a slow guest on a busy machine
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
