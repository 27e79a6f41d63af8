import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIptables } from "@fairlead/kernel/fake";
import { type BackendsUnderTest, conformanceTable, differences, expectedWays, runCase } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { COUNTERS, createIptablesBackend } from "../src/index.ts";

const subjects: BackendsUnderTest = {
  open: (family, { localhostNodePorts }) => {
    const fake = new FakeIptables({ family, nfacct: new Set(COUNTERS) });
    const backend = createIptablesBackend(fake, { localhostNodePorts, counters: async (names) => new Set(names) });
    return { backend, ruleSet: () => fake.ruleSet() };
  },
  filter: (options) => createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs }),
};

test.each(conformanceTable.map((row) => [row.name, row] as const))("%s", async (_, row) => {
  const expected = row.expected.iptables;
  if ("skip" in expected) throw new Error(`iptables mode skips it: ${expected.skip}`);
  const ways = await runCase(row, subjects);
  expect(differences(expectedWays(expected), ways, { probabilities: true })).toEqual([]);
});
