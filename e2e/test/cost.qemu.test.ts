import { missingForCounting } from "@fairlead/lab/qemu/boot";
import { beforeAll, describe, expect, test } from "vitest";
import { countFew } from "../src/cost/guests.ts";
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
} else {
  test("counts in QEMU", ({ skip }) => {
    if (CI !== "") throw new Error(`CI must count instructions: ${missing}`);
    skip(missing);
  });
}
