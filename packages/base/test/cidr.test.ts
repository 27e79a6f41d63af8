import { BlockList } from "node:net";
import {
  bracketed,
  contains,
  containsCIDR,
  familyOf,
  hostCIDR,
  inAnyOf,
  isLoopback,
  isUnspecified,
  ofFamily,
  overlap,
  parseCIDR,
  parseCIDRLeniently,
  prefixLengthOf,
  rangeCIDRs,
  socketText,
} from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const PLAIN = { hostBits: false, mapped: false };

describe("strict", () => {
  test.each([
    ["10.244.0.0/16", { family: "IPv4", text: "10.244.0.0/16", prefixLength: 16, ...PLAIN }],
    ["10.244.1.0/16", { family: "IPv4", text: "10.244.0.0/16", prefixLength: 16, ...PLAIN, hostBits: true }],
    ["FD00:244:0::/48", { family: "IPv6", text: "fd00:244::/48", prefixLength: 48, ...PLAIN }],
    [
      "::ffff:10.244.0.0/112",
      { family: "IPv4", text: "10.244.0.0/16", prefixLength: 16, hostBits: false, mapped: true },
    ],
    ["::ffff:0.0.0.0/90", { family: "IPv4", text: "0.0.0.0/0", prefixLength: 0, hostBits: false, mapped: true }],
    ["0.0.0.0/0", { family: "IPv4", text: "0.0.0.0/0", prefixLength: 0, ...PLAIN }],
    ["fd00::1/128", { family: "IPv6", text: "fd00::1/128", prefixLength: 128, ...PLAIN }],
  ])("%s is %o", (text, cidr) => {
    expect(parseCIDR(text)).toEqual(cidr);
  });

  const REFUSED =
    "10.0.0.0 10.0.0.0/33 10.0.0.0/08 10.0.0.0/ fd00::/129 010.0.0.0/8 /8 10.0.0.0/8/8 ::ffff:10.0.0.0/200";
  test.each(REFUSED.split(" "))("%j is not a CIDR", (text) => {
    expect(parseCIDR(text)).toBeUndefined();
  });
});

test.each(["10.0.0.0", "10.0.0.0/x", "10.0.0.0/8888", "x/8"])("%j is not a CIDR for lenient readers either", (text) => {
  expect(parseCIDRLeniently(text)).toBeUndefined();
});

const cidr = fc.oneof(
  fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })),
  fc.tuple(
    fc.ipV6().filter((text) => !text.includes(".")),
    fc.integer({ min: 0, max: 128 }),
  ),
);

test("being inside agrees with Node's BlockList, also near the edges", () => {
  fc.assert(
    fc.property(
      cidr,
      fc.oneof(
        fc.ipV4(),
        fc.ipV6().filter((text) => !text.includes(".")),
      ),
      ([host, length], other) => {
        const list = new BlockList();
        list.addSubnet(host, length, familyOf(host) === "IPv6" ? "ipv6" : "ipv4");
        const network = parseCIDR(`${host}/${length}`)?.text ?? "";
        for (const address of [other, host, network.split("/")[0] ?? ""]) {
          const known =
            familyOf(address) === familyOf(host) && list.check(address, familyOf(address) === "IPv6" ? "ipv6" : "ipv4");
          expect(contains(`${host}/${length}`, address)).toBe(known);
          expect(inAnyOf(["192.0.2.0/24", `${host}/${length}`])(address)).toBe(
            known || contains("192.0.2.0/24", address),
          );
        }
      },
    ),
    { numRuns: runs(1_000) },
  );
});

test("a CIDR contains itself and its parts, and nothing of the other family", () => {
  expect(containsCIDR("10.0.0.0/8", "10.1.0.0/16")).toBe(true);
  expect(containsCIDR("10.0.0.0/8", "10.0.0.0/8")).toBe(true);
  expect(containsCIDR("10.1.0.0/16", "10.0.0.0/8")).toBe(false);
  expect(containsCIDR("0.0.0.0/0", "fd00::/8")).toBe(false);
  expect(containsCIDR("fd00::/8", "fd00:1::/32")).toBe(true);
  expect(overlap("10.1.0.0/16", "10.0.0.0/8")).toBe(true);
  expect(overlap("10.1.0.0/16", "10.2.0.0/16")).toBe(false);
  expect(contains("0.0.0.0/0", "::1")).toBe(false);
  expect(() => contains("ten/8", "10.0.0.1")).toThrow(RangeError);
});

test("addresses of every host", () => {
  expect(["0.0.0.0", "::", "0.0.0.1", "::1"].map(isUnspecified)).toEqual([true, true, false, false]);
  const loopback = ["127.0.0.1", "127.0.0.0/8", "::1", "::1/128", "12.7.0.0", "::"].filter(isLoopback);
  expect(loopback).toEqual(["127.0.0.1", "127.0.0.0/8", "::1", "::1/128"]);
});

test("texts of one address", () => {
  expect([hostCIDR("10.0.0.1"), hostCIDR("fd00::1")]).toEqual(["10.0.0.1/32", "fd00::1/128"]);
  expect([prefixLengthOf("10.0.0.0/8"), prefixLengthOf("10.0.0.1"), prefixLengthOf("fd00::1")]).toEqual([8, 32, 128]);
  expect([bracketed("10.0.0.1"), bracketed("fd00::1")]).toEqual(["10.0.0.1", "[fd00::1]"]);
  expect([socketText("10.0.0.1", 80), socketText("fd00::1", 80)]).toEqual(["10.0.0.1:80", "[fd00::1]:80"]);
  expect(["10.0.0.0/8", "fd00::/8"].filter(ofFamily("IPv6"))).toEqual(["fd00::/8"]);
});

test.each([
  ["10.0.0.1", "10.0.0.1", ["10.0.0.1/32"]],
  ["10.0.0.1", "10.0.0.6", ["10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.6/32"]],
  ["0.0.0.0", "255.255.255.255", ["0.0.0.0/0"]],
  ["fd00::", "fd00::ffff", ["fd00::/112"]],
  ["10.0.0.2", "10.0.0.1", undefined],
  ["10.0.0.1", "fd00::", undefined],
  ["10.0.0.1", "", undefined],
])("the range from %s to %s", (start, end, cidrs) => {
  expect(rangeCIDRs(start, end)).toEqual(cidrs);
});
