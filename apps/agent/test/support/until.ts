import { PATIENCE_MS, settled, type VirtualClock } from "@fairlead/base/testing";

/** Turns the event loop until the condition holds, and virtual time with it where a clock is given. */
export async function until(condition: () => boolean, clock?: VirtualClock): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`did not happen within ${PATIENCE_MS} ms: ${condition}`);
    await clock?.advance(100);
    await settled();
  }
}

/** Turns the event loop and virtual time long enough for what is under way to show. */
export async function aWhile(clock: VirtualClock): Promise<void> {
  for (let turn = 0; turn < 300; turn++) {
    await clock.advance(100);
    await settled();
  }
}
