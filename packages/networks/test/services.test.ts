import { contains } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { AddressIndex } from "../src/index.ts";

const address = fc.oneof(
  fc.tuple(fc.constantFrom(0, 1, 255), fc.integer({ min: 0, max: 40 })).map(([c, d]) => `10.0.${c}.${d}`),
  fc.integer({ min: 0, max: 40 }).map((low) => `fd00::${low.toString(16)}`),
);
const service = fc.integer({ min: 0, max: 30 }).map((n): ServiceKey => `default/s${n}`);
const CIDRS = [
  "10.0.0.0/16",
  "10.0.1.0/24",
  "10.0.255.255/32",
  "10.0.0.8/29",
  "0.0.0.0/1",
  "fd00::/124",
  "fd00::1/128",
  "f000::/4",
];

test("after any changes it finds what a look at every service finds", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(service, fc.array(address, { maxLength: 60 })), { maxLength: 80 }), (changes) => {
      const index = new AddressIndex();
      const naive = new Map<ServiceKey, readonly string[]>();
      for (const [key, addresses] of changes) {
        index.set(key, addresses);
        naive.set(key, addresses);
      }
      for (const cidr of CIDRS) {
        const expected = [...naive].filter(([, list]) => list.some((one) => contains(cidr, one))).map(([key]) => key);
        expect([...index.within(cidr)].sort()).toEqual(expected.sort());
      }
    }),
    { numRuns: runs(300) },
  );
});

test("thousands of services at one address come and go", () => {
  const index = new AddressIndex();
  for (let n = 0; n < 3_000; n++) index.set(`default/s${n}`, ["10.0.0.1"]);
  expect(index.within("10.0.0.1/32").size).toBe(3_000);
  for (let n = 0; n < 2_999; n++) index.set(`default/s${n}`, []);
  expect([...index.within("10.0.0.0/8")]).toEqual(["default/s2999"]);
});
