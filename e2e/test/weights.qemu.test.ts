import { missingForCounting } from "@fairlead/lab/qemu/boot";
import { beforeAll, describe, expect, test } from "vitest";
import { countWeighted, WEIGHTED_SUBJECTS } from "../src/cost/guests.ts";
import { type GuestCounts, ratioIn } from "../src/cost/measure.ts";

/** What packets to endpoints with weights cost, relative to others: `pnpm e2e --all weights`, as it takes minutes. */
const missing = await missingForCounting();
const { CI = "" } = process.env;

if (missing === undefined) {
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
