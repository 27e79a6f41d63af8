import { socketText } from "@fairlead/base";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIptables } from "@fairlead/kernel/fake";
import {
  type ConformanceCase,
  conformanceTable,
  differences,
  expectedWays,
  type OutcomeShares,
  relayedWays,
  runCase,
  userspaceExpected,
} from "@fairlead/testkit";
import { expect, test } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createUserspaceBackend } from "../src/index.ts";

test.each(conformanceTable.map((row) => [row.name, row] as const))("%s", async (_, row) => {
  const expected = userspaceExpected(row);
  if ("skip" in expected) throw new Error(`userspace mode skips it: ${expected.skip}`);
  expect(differences(expectedWays(expected), await waysOf(row), { probabilities: true })).toEqual([]);
});

async function waysOf(row: ConformanceCase): Promise<OutcomeShares> {
  const sockets = new FakeSockets();
  const ways = await runCase(row, {
    open: (family, { localhostNodePorts }) => {
      const fake = new FakeIptables({ family });
      const backend = createUserspaceBackend(fake, { localhostNodePorts, open: sockets.open });
      return { backend, ruleSet: () => fake.ruleSet() };
    },
    filter: (options) => createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs }),
  });
  const ask = (socket: string, client: string) => {
    const endpoint = sockets.ask(row.packet.protocol, socket, client);
    return endpoint && socketText(endpoint.address, endpoint.port);
  };
  return relayedWays(ways, ask, row.sticky);
}
