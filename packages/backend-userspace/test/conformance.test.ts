import { contains, socketText } from "@fairlead/base";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIptables } from "@fairlead/kernel/fake";
import type { RuleSet } from "@fairlead/netfilter";
import {
  type ConformanceCase,
  conformanceTable,
  differences,
  expectedWays,
  NETWORKS,
  type OutcomeShares,
  outside,
  relayedWays,
  runCase,
  userspaceExpected,
} from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createUserspaceBackend } from "../src/index.ts";

test.each(conformanceTable.map((row) => [row.name, row] as const))("%s", async (_, row) => {
  const expected = userspaceExpected(row);
  if ("skip" in expected) throw new Error(`userspace mode skips it: ${expected.skip}`);
  expect(differences(expectedWays(expected), await waysOf(row), { probabilities: true })).toEqual([]);
});

/** What is for clients from outside, which ClusterIPs are not. */
const fromOutside = conformanceTable.filter((row) => {
  const ways = [...expectedOf(row).keys()];
  const { from, destination } = row.packet;
  const isClusterIP = Object.values(NETWORKS.services).some((cidr) => contains(cidr, destination));
  return from === outside && !isClusterIP && ways.length > 0 && ways.every((way) => /^\S+:\d+/.test(way));
});

describe("where INPUT drops by default", () => {
  test("there are rows of chosen node ports", () => {
    expect(fromOutside.map(({ topic }) => topic)).toContain("chosen node ports");
  });

  test.each(fromOutside.map((row) => [row.name, row] as const))("%s", async (_, row) => {
    const ways = await waysOf(row, droppingInput);
    expect(differences(expectedOf(row), ways, { probabilities: true })).toEqual([]);
  });
});

function expectedOf(row: ConformanceCase): OutcomeShares {
  const expected = userspaceExpected(row);
  return "skip" in expected ? new Map() : expectedWays(expected);
}

function droppingInput(rules: RuleSet): RuleSet {
  const filter = rules.get("filter");
  const input = filter?.chains.get("INPUT");
  if (filter === undefined || input === undefined) throw new Error("there is no chain INPUT");
  const chains = new Map([...filter.chains, ["INPUT", { ...input, policy: "DROP" as const }]]);
  return new Map([...rules, ["filter", { ...filter, chains }]]);
}

async function waysOf(row: ConformanceCase, within = (rules: RuleSet) => rules): Promise<OutcomeShares> {
  const sockets = new FakeSockets();
  const ways = await runCase(row, {
    open: (family, { localhostNodePorts }) => {
      const fake = new FakeIptables({ family });
      const backend = createUserspaceBackend(fake, { localhostNodePorts, open: sockets.open });
      return { backend, ruleSet: () => within(fake.ruleSet()) };
    },
    filter: (options) => createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs }),
  });
  const ask = (socket: string, client: string) => {
    const endpoint = sockets.ask(row.packet.protocol, socket, client);
    return endpoint && socketText(endpoint.address, endpoint.port);
  };
  return relayedWays(ways, ask, row.sticky);
}
