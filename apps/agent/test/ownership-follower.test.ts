import { VirtualClock } from "@fairlead/base/testing";
import { ClusterState, type DirtyServices, decodeService, type OwnershipChange, type PlanStep } from "@fairlead/core";
import { createEndpointFilter, Memory, OwnershipDelay } from "@fairlead/endpoint-filter";
import { service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { createMetrics } from "../src/metrics/metrics.ts";
import { ownershipFollower } from "../src/ownership/follower.ts";
import { MemoryKeeper } from "../src/ownership/keeper.ts";
import { recordedLog } from "./support/recorded-log.ts";

const SCOPE = { excludeCIDRs: [], mixedServices: "own-endpoints", ownershipAnnotation: true } as const;

const NOTHING: PlanStep = { changes: new Map(), memory: [], ownershipChanges: [], released: [], problems: [] };
const CLEAN: DirtyServices = { services: new Set(), triggerTimes: new Map() };

function following() {
  const clock = new VirtualClock();
  const log = recordedLog();
  const metrics = createMetrics(new ClusterState());
  const delay = new OwnershipDelay(10_000, clock);
  const keeper = new MemoryKeeper(Memory.empty, { path: "/dev/null/none/ownership.json", scope: SCOPE, clock, log });
  return { clock, metrics, delay, follower: ownershipFollower(keeper, delay, log, metrics.agent) };
}

test("a service that is gone waits for no owner, and is due at no sync", async () => {
  const { clock, delay, follower } = following();
  const filter = createEndpointFilter({ ...SCOPE, excludeCIDRs: ["10.16.0.0/16"], excludedFrontends: "all" });
  const { object: web } = decodeService(service("web", { clusterIPs: ["10.96.0.1"], ports: [{ port: 80 }] }));
  if (web === undefined) throw new Error("it was just made");
  delay.around(filter).decide(web, "IPv4", [{ address: "10.16.0.5" }], "ours");
  const gone = { service: "default/web", family: "IPv4" } as const;
  await follower.planned?.({ ...NOTHING, memory: [{ ...gone, ownership: "ours" }] }, CLEAN);
  clock.advanceNow(10_000);
  expect(delay.due()).toEqual(["default/web"]);
  await follower.planned?.({ ...NOTHING, memory: [gone] }, CLEAN);
  expect(delay.due()).toEqual([]);
});

test("changes of ownership are counted by what decided", async () => {
  const { metrics, follower } = following();
  const change = (name: string, decidedBy: NonNullable<OwnershipChange["decidedBy"]>): OwnershipChange => {
    return { service: `default/${name}`, family: "IPv4", from: "ours", to: "foreign", why: "so", decidedBy };
  };
  const step: PlanStep = {
    ...NOTHING,
    ownershipChanges: [
      change("moved", "endpoints"),
      change("touched", "endpoints"),
      change("annotated", "annotation"),
      change("ruled", "rule"),
    ],
  };
  const dirty: DirtyServices = { services: new Set(["default/moved", "default/annotated"]), triggerTimes: new Map() };
  await follower.planned?.(step, dirty);
  const { text } = await metrics.text();
  expect(text.split("\n").filter((line) => line.startsWith("fairlead_ownership_changes_total{"))).toEqual(
    ["endpoints", "cidrs", "annotation", "rule"].map(
      (reason) => `fairlead_ownership_changes_total{from="ours",to="foreign",reason="${reason}"} 1`,
    ),
  );
});
