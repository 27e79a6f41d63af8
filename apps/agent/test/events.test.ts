import { expect, test } from "vitest";
import { eventFollower } from "../src/events/follower.ts";
import type { NodeEvent } from "../src/events/node-event.ts";
import { NodeEvents } from "../src/events/node-events.ts";
import type { FamilyOutcome } from "../src/pacing/family-sync.ts";
import type { FamilyRun } from "../src/sync/syncer.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { VirtualClock } from "./support/virtual-clock.ts";

const failed: NodeEvent = { type: "Warning", reason: "SyncFailed", message: "m".repeat(2_000) };

function events(answer: () => number) {
  const sent: unknown[] = [];
  const clock = new VirtualClock();
  const log = recordedLog();
  const post = async (event: unknown) => {
    sent.push(event);
    return answer();
  };
  return { sent, clock, log, events: new NodeEvents({ node: "node-a", post, clock, log }) };
}

test("an Event about the Node, once in ten minutes for a reason", async () => {
  const one = events(() => 201);
  await one.events.tell(failed);
  await one.events.tell(failed);
  await one.events.tell({ ...failed, reason: "Other" });
  expect(one.sent).toHaveLength(2);
  expect(one.sent[0]).toMatchObject({
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace: "default" },
    involvedObject: { kind: "Node", name: "node-a", uid: "node-a" },
    reason: "SyncFailed",
    message: "m".repeat(1_024),
    firstTimestamp: "2030-01-01T00:00:00Z",
  });
  await one.clock.advance(600_000);
  await one.events.tell(failed);
  expect(one.sent).toHaveLength(3);
  expect(one.log.lines).toEqual([]);
});

test("a role that does not allow it: one line, and no more tries", async () => {
  const one = events(() => 403);
  await one.events.tell(failed);
  await one.events.tell({ ...failed, reason: "Other" });
  expect(one.sent).toHaveLength(1);
  expect(one.log.messages("info")).toEqual([expect.stringContaining("the role does not allow")]);
});

test("a server that does not answer is no failure", async () => {
  const one = events(() => {
    throw new Error("ECONNREFUSED");
  });
  await one.events.tell(failed);
  expect(one.log.messages("verbose")).toHaveLength(1);
});

test("the third failure in a row is told, a success begins anew", () => {
  const told: string[] = [];
  const follower = eventFollower({ tell: async ({ message }) => void told.push(message) });
  const failure: FamilyOutcome = { kind: "failed", sync: "full", error: new Error("no"), milliseconds: 1, retryIn: 1 };
  const success: FamilyOutcome = { kind: "synced", report: { kind: "full", objects: {} }, milliseconds: 1 };
  const ran = (outcome: FamilyOutcome) => {
    const plan = {} as FamilyRun["plan"];
    void follower.ran?.({ family: "IPv4", plan, change: undefined, outcome });
  };
  for (const outcome of [failure, failure, success, failure, failure]) ran(outcome);
  expect(told).toEqual([]);
  ran(failure);
  expect(told).toEqual(["The rules of IPv4 could not be written 3 times in a row: no"]);
});
