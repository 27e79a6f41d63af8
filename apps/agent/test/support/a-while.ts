import { settled, type VirtualClock } from "@fairlead/base/testing";

/** Turns the event loop and virtual time long enough for what is under way to show. */
export async function aWhile(clock: VirtualClock): Promise<void> {
  for (let turn = 0; turn < 300; turn++) {
    await clock.advance(100);
    await settled();
  }
}
