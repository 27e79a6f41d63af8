import type { PlanChange, ServicePortGroup } from "@fairlead/core";
import { describe, expect, test } from "vitest";
import { CleaningQueue } from "../src/conntrack/queue.ts";

function group(protocol: "TCP" | "UDP" | "SCTP", family: "IPv4" | "IPv6" = "IPv4"): ServicePortGroup {
  return {
    id: `default/web/${protocol.toLowerCase()}`,
    name: "default/web",
    service: "default/web",
    family,
    protocol,
    cluster: [],
    local: [],
    serving: [],
    endpointCount: 0,
    frontends: [],
    annotations: {},
  };
}

function change(...groups: ServicePortGroup[]): PlanChange {
  return {
    family: "IPv4",
    groups: new Map(groups.map((after) => [after.id, { after }])),
    healthChecks: new Map(),
    foreignClusterIPs: { added: [], removed: [] },
  };
}

describe("what conntrack has to be cleaned of", () => {
  test("everything once after the start, then only what changed", () => {
    const queue = new CleaningQueue("IPv4");
    expect([...(queue.take()?.protocols ?? [])]).toEqual(["UDP", "SCTP"]);
    expect(queue.take()).toBeUndefined();
    queue.changed(change(group("TCP")));
    expect(queue.take()).toBeUndefined();
    queue.changed(change(group("TCP"), group("UDP")));
    queue.changed(undefined);
    expect([...(queue.take()?.protocols ?? [])]).toEqual(["UDP"]);
  });

  test("groups that another network has taken over, of its family alone", () => {
    const queue = new CleaningQueue("IPv4");
    queue.take();
    const released = group("UDP");
    queue.released([released, group("TCP"), group("UDP", "IPv6")]);
    expect(queue.take()).toEqual({ protocols: new Set(["UDP"]), released: [released] });
  });
});
