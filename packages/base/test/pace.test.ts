import { expect, test } from "vitest";
import { Pace } from "../src/index.ts";
import { VirtualClock } from "../src/testing/index.ts";

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
