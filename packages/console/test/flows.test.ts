import type { Flow } from "@fairlead/inspect";
import { expect, test } from "vitest";
import { shownFlows } from "../src/model/flows.ts";

const flow = (at: number, condition: "ready" | "gone" = "ready"): Flow => ({
  family: "IPv4",
  protocol: "TCP",
  client: { address: "10.144.1.9", port: 1_024 + at },
  frontend: { kind: "cluster-ip", address: `10.96.${at >> 8}.${at & 255}`, port: 80 },
  service: `shop/s-${at}`,
  port: "",
  owner: "ours",
  endpoint: { address: "10.144.1.5", port: 8080, condition },
  replied: true,
});

test("all of a few, nothing left out", () => {
  const shown = shownFlows([flow(1), flow(2)]);
  expect(shown).toMatchObject({ flows: [flow(1), flow(2)], more: { services: 0, flows: 0 } });
  expect(shown.traffic.map(({ service, connections }) => [service, connections])).toEqual([
    ["shop/s-1", 1],
    ["shop/s-2", 1],
  ]);
});

test("of many those that hang come first, and what is left out is counted", () => {
  const many = [...Array.from({ length: 1_000 }, (_, at) => flow(at)), flow(1_000, "gone")];
  const { traffic, flows, more } = shownFlows(many);
  expect(flows[0]?.endpoint?.condition).toBe("gone");
  expect([traffic.length + more.services, flows.length + more.flows]).toEqual([1_001, 1_001]);
  expect(traffic.length).toBe(200);
});
