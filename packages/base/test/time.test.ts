import { inSlices, nextTurn, sleep, slices, systemClock } from "@fairlead/base";
import { settled, VirtualClock } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import { Pace } from "../src/index.ts";

test("sleep ends with its time", async () => {
  const clock = new VirtualClock();
  let woken = false;
  const sleeping = sleep(clock, 1_000).then(() => {
    woken = true;
  });
  await clock.advance(999);
  expect(woken).toBe(false);
  await clock.advance(1);
  await sleeping;
  expect(woken).toBe(true);
});

test("sleep ends with its signal, and leaves no timer", async () => {
  const clock = new VirtualClock();
  const abort = new AbortController();
  const sleeping = sleep(clock, 1_000, abort.signal);
  abort.abort();
  await sleeping;
  expect(clock.pending).toEqual([]);
  await sleep(clock, 1_000, abort.signal);
});

test("sleep for no time needs no timer", async () => {
  await sleep(new VirtualClock(), 0);
});

test("virtual time fires timers in the order of their time, then of their making", async () => {
  const clock = new VirtualClock(1_000);
  const fired: string[] = [];
  clock.after(20, () => fired.push("b"));
  clock.after(10, () => {
    fired.push(`a at ${clock.now()}, ${clock.monotonic()}`);
    clock.after(10, () => fired.push("c"));
  });
  const cancel = clock.after(15, () => fired.push("never"));
  cancel();
  await clock.advance(20);
  expect(fired).toEqual(["a at 1010, 10", "b", "c"]);
  clock.after(5, () => fired.push("d"));
  clock.advanceNow(5);
  expect(fired.at(-1)).toBe("d");
});

test("a test can wait for a timer", async () => {
  const clock = new VirtualClock();
  const found = clock.timer((ms) => ms > 100);
  clock.after(50, () => {});
  clock.after(500, () => {});
  expect(await found).toBe(500);
  expect(await clock.timer((ms) => ms === 50)).toBe(50);
});

/** A clock that is a millisecond later at each look, and counts turns. */
function counting(): { readonly clock: { monotonic(): number }; readonly turn: () => Promise<void>; turns(): number } {
  let now = 0;
  let turns = 0;
  return {
    clock: { monotonic: () => now++ },
    turn: async () => {
      turns += 1;
    },
    turns: () => turns,
  };
}

test("stepped work gives others their turn once its slice is used up", async () => {
  const { clock, turn, turns } = counting();
  const steps = (function* () {
    for (let step = 0; step < 100; step += 1) yield step;
    return "done";
  })();
  expect(await inSlices(steps, { clock, turn, budget: 10 })).toBe("done");
  expect(turns()).toBe(10);
});

test("short work goes on without a turn", async () => {
  const yielding = slices({ clock: { monotonic: () => 0 } });
  expect(yielding()).toBeUndefined();
});

test("a turn lets timers and promises run", async () => {
  let ran = false;
  setImmediate(() => {
    ran = true;
  });
  await nextTurn();
  await settled();
  expect(ran).toBe(true);
});

test("the system's clock has wall time and durations", async () => {
  const [wall, start] = [systemClock.now(), systemClock.monotonic()];
  await new Promise<void>((resolve) => systemClock.after(2, resolve));
  systemClock.after(60_000, () => expect.unreachable())();
  expect(systemClock.monotonic()).toBeGreaterThan(start);
  expect(systemClock.now()).toBeGreaterThanOrEqual(wall);
});

test("work is due again after so long that it takes its share of the time", async () => {
  const clock = new VirtualClock();
  const pace = new Pace(clock, 0.02);
  expect(pace.isDue).toBe(true);
  expect(await pace.run(async () => clock.advance(100).then(() => "done"))).toBe("done");
  await clock.advance(4_899);
  expect(pace.isDue).toBe(false);
  await clock.advance(1);
  expect(pace.isDue).toBe(true);
});

test("work that fails counts as well", async () => {
  const clock = new VirtualClock();
  const pace = new Pace(clock, 0.5);
  const failing = pace.run(async () => {
    await clock.advance(10);
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  expect(pace.isDue).toBe(false);
});
