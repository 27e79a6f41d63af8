import { ClusterState } from "@fairlead/core";
import type { NodeEvent } from "@fairlead/intake";
import { expect, test } from "vitest";
import { createMetrics } from "../src/metrics/metrics.ts";
import { foreignAlarm } from "../src/networks.ts";
import { recordedLog } from "./support/recorded-log.ts";

test("more foreign services than expected are reported once, and again after they were fewer", async () => {
  const log = recordedLog();
  const events: NodeEvent[] = [];
  const { networks: metrics, text } = createMetrics(new ClusterState(), { learns: true });
  let foreign = 2;
  const { planned } = foreignAlarm({
    maxForeignPercent: 50,
    families: ["IPv4"],
    services: () => ({ ours: 2, foreign, mixed: 0 }),
    metrics,
    log,
    events: { report: async (event) => void events.push(event) },
  });
  const after = (now: number) => {
    foreign = now;
    planned();
    return log.lines.length;
  };
  const metric = async () => (await text()).text.match(/^fairlead_many_foreign_services\{.*/m)?.[0];
  after(2);
  expect(await metric()).toBe('fairlead_many_foreign_services{ip_family="IPv4"} 0');
  expect([after(2), after(3), after(4), after(1), after(3)]).toEqual([0, 1, 1, 1, 2]);
  expect(await metric()).toBe('fairlead_many_foreign_services{ip_family="IPv4"} 1');
  expect(events).toMatchObject([
    { reason: "ManyForeignServices", message: expect.stringContaining("3 of 5 IPv4") },
    {},
  ]);
});
