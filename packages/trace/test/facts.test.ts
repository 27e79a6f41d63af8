import { describe, expect, test } from "vitest";
import { parseRecentList, parseRoutes, routing, ticksPerSecond } from "../src/index.ts";

describe("routes", () => {
  const json = JSON.stringify([
    { dst: "default", gateway: "10.201.0.1", dev: "eth0", metric: 100, flags: [] },
    { dst: "10.144.0.0/16", gateway: "10.201.0.11", dev: "eth1", flags: [] },
    { dst: "10.144.1.5", dev: "cali1", scope: "link", flags: [] },
    { dst: "10.144.2.0/24", nexthops: [{ dev: "eth2", gateway: "10.9.9.9" }], flags: [] },
    { type: "unreachable", dst: "10.145.0.0/16", flags: [] },
    { dst: "10.144.3.0/24", dev: "slow", metric: 200, flags: [] },
    { dst: "10.144.3.0/24", dev: "fast", metric: 50, flags: [] },
  ]);
  const outInterface = routing(parseRoutes(json, "IPv4"));

  test.each([
    ["192.0.2.1", "eth0"],
    ["10.144.9.1", "eth1"],
    ["10.144.1.5", "cali1"],
    ["10.144.2.9", "eth2"],
    ["10.144.3.1", "fast"],
  ])("%s leaves by %s", (destination, expected) => expect(outInterface(destination)).toBe(expected));

  test("a destination that no route covers is unknown", () => {
    expect(routing(parseRoutes("", "IPv6"))("fd00::1")).toBeUndefined();
    expect(routing([{ cidr: "fd00::/8", outInterface: "eth0" }])("fd00::1")).toBe("eth0");
    expect(routing([{ cidr: "fd00::/8", outInterface: "eth0" }])("10.0.0.1")).toBeUndefined();
  });
});

describe("recent lists", () => {
  test.each([100, 250, 300, 1000])("%i ticks a second are seen by the uptime", (perSecond) => {
    expect(ticksPerSecond(2 ** 32 - 300 * perSecond + 4000 * perSecond, 4000.4)).toBe(perSecond);
  });

  test("ages are seconds since each time that an address was seen", () => {
    const text = "src=10.144.1.9 ttl: 64 last_seen: 4295000250 oldest_pkt: 2 4295000000, 4295000250\nsomething else\n";
    expect([...parseRecentList(text, { jiffies: 4_295_000_500, perSecond: 250 })]).toEqual([["10.144.1.9", [2, 1]]]);
  });
});
