import { settled } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import type { ForeignChanges } from "../src/modes/mode.ts";
import { followForeign } from "../src/run/foreign-changes.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf } from "./support/running-agent.ts";

/** An agent whose mode follows what others do. */
function following(watchForeign: (notify: ForeignChanges) => Promise<void>) {
  const log = recordedLog();
  let checks = 0;
  const loop = { requestCheck: () => void checks++ };
  const { signal } = new AbortController();
  const done = followForeign({ watchForeign, config: configOf([]), log }, { loop }, signal);
  return { done, log, checks: () => checks };
}

test("what others may have changed is looked at now, and nothing is said before it is", async () => {
  const { checks, log } = following(async (notify) => {
    notify.changed();
    await settled();
    notify.changed();
  });
  await settled();
  expect(checks()).toBe(2);
  expect(log.lines).toEqual([]);
});

test("where nothing can be followed any more, a line says what still finds it", async () => {
  const { done, log } = following(() => Promise.reject(new Error("no multicast group")));
  await done;
  expect(log.lines).toMatchObject([{ level: "warn", fields: { syncPeriod: "30000ms", error: "no multicast group" } }]);
});
