import type { IPFamily } from "@fairlead/core";
import type { RuleSet } from "@fairlead/netfilter";
import { conformanceTable, differences, expectedWays, packetFamily, tracedWays } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type CaseGroup, groupCases } from "../../src/cases/conformance/groups.ts";
import { strays } from "../../src/cases/conformance/probe-case.ts";
import { type ProgrammedLab, portsOf, programmedLab } from "../../src/cases/conformance/programmed.ts";
import { labFor } from "./lab-for.ts";

describe("conformance with real packets", () => {
  const lab = labFor(portsOf(conformanceTable));

  describe.each(["nft", "legacy"] as const)("iptables (%s) on the real kernel", (variant) => {
    let node: ProgrammedLab;

    beforeAll(async () => {
      node = await programmedLab(lab, variant);
    });

    afterAll(() => node.cleanup());

    for (const [index, group] of groupCases(conformanceTable).entries())
      describe(`options ${index + 1}`, () => rows(group));

    function rows(group: CaseGroup): void {
      let ruleSets: Readonly<Record<IPFamily, RuleSet>>;

      beforeAll(async () => {
        ruleSets = await node.program(group);
      });

      for (const row of group.rows) {
        const { iptables } = row.expected;
        if ("skip" in iptables) continue;
        test.concurrent(row.name, async ({ expect }) => {
          const traced = tracedWays(row, ruleSets[packetFamily(row.packet)]);
          expect(differences(expectedWays(iptables), traced, { probabilities: true }), "tracer").toEqual([]);
          if (row.unreal === undefined) expect(await strays(lab, row, iptables), "real packets").toEqual([]);
        });
      }
    }
  });
});
