import { missingForCounting } from "@fairlead/lab/qemu/boot";
import { beforeAll, describe, expect, test } from "vitest";
import { countFew, countWeighted, WEIGHTED_SUBJECTS } from "../src/cost/guests.ts";
import { type GuestCounts, ratioIn, SUBJECTS } from "../src/cost/measure.ts";
import { TOLERANCE } from "../src/cost/suite.ts";

/**
 * What packets cost, in instructions relative to kube-proxy's in the same guest: the same on each run, whatever else
 * the machine does. `pnpm e2e --suite cost` counts the rest.
 */
const missing = await missingForCounting();
const { CI = "" } = process.env;

if (missing === undefined) {
  describe("instructions with the fast path relative to kube-proxy's", () => {
    let counts: GuestCounts | undefined;

    beforeAll(async () => {
      counts = await countFew("6.12", ["connect", "query", "request", "datagram"]);
    });

    test.each([
      ["connect", 1],
      ["query", 1.03],
      ["request", 0.8],
      ["datagram", 0.8],
    ] as const)("a %s costs at most %d", (unit, most) => {
      expect(ratioIn(counts, SUBJECTS.fast, unit, SUBJECTS.base)).toBeLessThanOrEqual(most + TOLERANCE[unit]);
    });
  });

  describe.each(["iptables", "nftables"] as const)("in %s mode, endpoints with weights relative to others", (mode) => {
    let counts: GuestCounts | undefined;

    beforeAll(async () => {
      counts = await countWeighted("6.12", mode, ["connect", "query"]);
    });

    test.each(["connect", "query"] as const)("a %s costs at most 1.05", (unit) => {
      const { alike, weighted } = WEIGHTED_SUBJECTS;
      expect(ratioIn(counts, weighted, unit, alike)).toBeLessThanOrEqual(1.05);
    });
  });
} else {
  test("counts in QEMU", ({ skip }) => {
    if (CI !== "") throw new Error(`CI must count instructions: ${missing}`);
    skip(missing);
  });
}
