import { describe, expect, test } from "vitest";
import { parseRecentList, routing, ticksPerSecond } from "../src/index.ts";

describe("routes", () => {
  const outInterface = routing([
    { cidr: "0.0.0.0/0", outInterface: "eth0", metric: 100 },
    { cidr: "10.144.0.0/16", outInterface: "eth1" },
    { cidr: "10.144.1.5/32", outInterface: "cali1" },
    { cidr: "10.144.3.0/24", outInterface: "slow", metric: 200 },
    { cidr: "10.144.3.0/24", outInterface: "fast", metric: 50 },
  ]);

  test.each([
    ["192.0.2.1", "eth0"],
    ["10.144.9.1", "eth1"],
    ["10.144.1.5", "cali1"],
    ["10.144.3.1", "fast"],
  ])("%s leaves by %s", (destination, expected) => expect(outInterface(destination)).toBe(expected));

  test("a destination that no route covers is unknown", () => {
    expect(routing([])("fd00::1")).toBeUndefined();
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
