import { VirtualClock } from "@fairlead/base/testing";
import { ClusterState, type DirtyServices, type OwnershipChange, type PlanStep } from "@fairlead/core";
import { Memory } from "@fairlead/endpoint-filter";
import { expect, test } from "vitest";
import { createMetrics } from "../src/metrics/metrics.ts";
import { ownershipFollower } from "../src/ownership/follower.ts";
import { MemoryKeeper } from "../src/ownership/keeper.ts";
import { recordedLog } from "./support/recorded-log.ts";

const SCOPE = { excludeCIDRs: [], mixedServices: "own-endpoints", ownershipAnnotation: true } as const;

test("changes of ownership are counted by what decided", async () => {
  const log = recordedLog();
  const metrics = createMetrics(new ClusterState());
  const keeper = new MemoryKeeper(Memory.empty, {
    path: "/dev/null/none/ownership.json",
    scope: SCOPE,
    clock: new VirtualClock(),
    log,
  });
  const follower = ownershipFollower(keeper, { forget() {} }, log, metrics.agent);
  const change = (name: string, decidedBy: NonNullable<OwnershipChange["decidedBy"]>): OwnershipChange => {
    return { service: `default/${name}`, family: "IPv4", from: "ours", to: "foreign", why: "so", decidedBy };
  };
  const step: PlanStep = {
    changes: new Map(),
    memory: [],
    ownershipChanges: [
      change("moved", "endpoints"),
      change("touched", "endpoints"),
      change("annotated", "annotation"),
      change("ruled", "rule"),
    ],
    released: [],
    problems: [],
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
