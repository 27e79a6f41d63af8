import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeNftables } from "@fairlead/kernel/fake";
import { conformanceTable, differences, expectedWays, nftablesRow, runCase, type Subjects } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { createNftablesBackend, NFTABLES_TABLE } from "../src/index.ts";

const subjects: Subjects = {
  open: (family, { masqueradeAll }) => {
    const fake = new FakeNftables();
    const backend = createNftablesBackend(fake, { family, masqueradeAll });
    const ruleSet = async () => {
      const table = await fake.table(family === "IPv4" ? "ip" : "ip6", NFTABLES_TABLE);
      return { nftables: table === undefined ? [] : [table] };
    };
    return { backend, ruleSet };
  },
  filter: ({ excludeClusterCIDRs, mixedServices, excludedFrontends, ownershipAnnotation }) =>
    createEndpointFilter({ excludeCIDRs: excludeClusterCIDRs, mixedServices, excludedFrontends, ownershipAnnotation }),
};

describe("nftables mode", () => {
  for (const row of conformanceTable.map(nftablesRow)) {
    const expected = row.expected.nftables;
    if ("skip" in expected) test.skip(`${row.name}: ${expected.skip}`);
    else {
      test(row.name, async () => {
        const ways = await runCase(row, subjects);
        expect(differences(expectedWays(expected), ways, { probabilities: true, uneven: 0.005 })).toEqual([]);
      });
    }
  }
});
