import { missingForCounting } from "@fairlead/lab/qemu/missing";
import { beforeAll, describe, expect, test } from "vitest";
import { type Counts, count } from "../src/cost/measure.ts";
import { ratio } from "../src/cost/ratios.ts";

/**
 * What packets cost, in instructions relative to kube-proxy's in the same guest: the same on each run, whatever else
 * the machine does.
 */
const missing = await missingForCounting();
const { CI = "" } = process.env;

/** Counts of one kernel are repeatable to half a percent. */
const TOLERANCE = 0.01;

if (missing === undefined) {
  describe("instructions relative to kube-proxy's", () => {
    let counts: Counts | undefined;

    beforeAll(async () => {
      counts = await count("6.12", ["connect", "request", "datagram"]);
    });

    test.each([
      ["Fairlead", "connect", 1.01],
      ["Fairlead", "request", 1],
      ["Fairlead", "datagram", 1],
      ["Fairlead with the fast path", "connect", 1],
      ["Fairlead with the fast path", "request", 0.8],
      ["Fairlead with the fast path", "datagram", 0.8],
    ] as const)("%s: a %s costs at most %d", (subject, unit, most) => {
      expect(counts && ratio(counts, subject, unit)).toBeLessThanOrEqual(most + TOLERANCE);
    });
  });
} else {
  test("counts in QEMU", ({ skip }) => {
    if (CI !== "") throw new Error(`CI must count instructions: ${missing}`);
    skip(missing);
  });
}
