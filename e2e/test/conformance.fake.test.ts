import {
  type BackendsUnderTest,
  conformanceTable,
  differences,
  expectedWays,
  type Mode,
  runCase,
} from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { fakeIptables, fakeIpvs } from "../src/cases/conformance/groups.ts";

describe.each<[name: string, mode: Mode, subjects: BackendsUnderTest]>([
  ["iptables (nft)", "iptables", fakeIptables("nft")],
  ["iptables (legacy)", "iptables", fakeIptables("legacy")],
  ["ipvs", "ipvs", fakeIpvs],
])("%s on the kernel in memory", (_, mode, subjects) => {
  for (const row of conformanceTable) {
    const expected = row.expected[mode];
    if ("skip" in expected) continue;
    test(row.name, async () => {
      const observed = await runCase(row, subjects);
      expect(differences(expectedWays(expected), observed, { probabilities: true })).toEqual([]);
    });
  }
});
