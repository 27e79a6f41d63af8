import { settled, VirtualClock } from "@fairlead/base/testing";
import { expect, test } from "vitest";
import type { ForeignChanges } from "../src/modes/mode.ts";
import { followForeign } from "../src/run/foreign-changes.ts";
import { allSynced } from "../src/sync/all-synced.ts";
import type { FamilyOutcome } from "../src/sync/family-sync.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf } from "./support/running-agent.ts";

const SYNCED: FamilyOutcome = { kind: "synced", report: { kind: "full", objects: {} }, milliseconds: 1 };

/** An agent of both families whose mode tells what others do. */
function following(watch?: (notify: ForeignChanges) => Promise<void>) {
  const asked: string[] = [];
  const log = recordedLog();
  const clock = new VirtualClock();
  const all = allSynced(["IPv4", "IPv6"]);
  let notify: ForeignChanges | undefined;
  const watchForeign = async (changes: ForeignChanges) => {
    notify = changes;
    await watch?.(changes);
  };
  const loop = { request: (kind: string) => asked.push(kind), requestCheck: () => asked.push("check") };
  const { signal } = new AbortController();
  void followForeign({ watchForeign, config: configOf([]), clock, log }, { loop, allSynced: all }, signal);
  const ran = async (family: "IPv4" | "IPv6", outcome: FamilyOutcome) => {
    await all.follower.ran?.({ family, plan: undefined as never, change: undefined, outcome });
    await settled();
  };
  return { asked, clock, log, ran, notify: () => notify };
}

test("what others do is followed once both families are written: own full syncs are the loudest", async () => {
  const { ran, notify } = following();
  await ran("IPv4", SYNCED);
  await ran("IPv6", { kind: "waiting" });
  expect(notify()).toBeUndefined();
  await ran("IPv6", SYNCED);
  expect(notify()).toBeDefined();
});

test("a change asks for a full sync at once, and what was not told for a check", async () => {
  const { asked, ran, notify } = following();
  await ran("IPv4", SYNCED);
  await ran("IPv6", SYNCED);
  notify()?.changed("nft (4711)");
  notify()?.lost();
  expect(asked).toEqual(["full", "check"]);
});

test("who changes it is told, and not again while that goes on", async () => {
  const { asked, clock, log, ran, notify } = following();
  await ran("IPv4", SYNCED);
  await ran("IPv6", SYNCED);
  for (let change = 0; change < 200; change++) {
    notify()?.changed("nft (4711)");
    await clock.advance(100);
  }
  expect(asked).toHaveLength(200);
  expect(log.lines).toMatchObject([{ level: "warn", fields: { by: "nft (4711)" } }]);
  await clock.advance(10_000);
  notify()?.changed("kube-proxy (12)");
  expect(log.lines).toHaveLength(2);
});

test("where nothing can be told any more, a line says what still finds it", async () => {
  const { ran, log } = following(() => Promise.reject(new Error("no multicast group")));
  await ran("IPv4", SYNCED);
  await ran("IPv6", SYNCED);
  expect(log.lines).toMatchObject([{ level: "warn", fields: { syncPeriod: "30000ms", error: "no multicast group" } }]);
});
