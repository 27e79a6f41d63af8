import { conformanceTable, differences, expectedWays, runCase } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { fakeIptables } from "../src/conformance/iptables-subjects.ts";

describe.each(["nft", "legacy"] as const)("iptables (%s) on the kernel in memory", (variant) => {
  const subjects = fakeIptables(variant);
  for (const row of conformanceTable) {
    const { iptables } = row.expected;
    if ("skip" in iptables) continue;
    test(row.name, async () => {
      const observed = await runCase(row, subjects);
      expect(differences(expectedWays(iptables), observed, { probabilities: true })).toEqual([]);
    });
  }
});
