import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeNftables } from "@fairlead/kernel/fake";
import { NFT_FAMILY } from "@fairlead/netfilter/nft";
import {
  type Alongside,
  alongsideExpected,
  type BackendsUnderTest,
  conformanceTable,
  differences,
  expectedWays,
  nftablesRow,
  runCase,
} from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { createNftablesBackend, removeNftablesMode, tableName } from "../src/index.ts";
import { EMPTY_PLAN } from "./support/world.ts";

/** Two agents in one kernel: one serves the row, the other one has no service and knows the ranges of ClusterIPs. */
function alongsideWith(serving: string, other: string): BackendsUnderTest {
  return {
    open: (family) => {
      const fake = new FakeNftables();
      const empty = createNftablesBackend(fake, { family, serviceProxyName: other });
      const backend = createNftablesBackend(fake, { family, serviceProxyName: serving });
      const ruleSet = async () => {
        await empty.sync(EMPTY_PLAN[family]);
        const names = [tableName(serving), tableName(other)];
        const tables = await Promise.all(names.map((name) => fake.table(NFT_FAMILY[family], name)));
        return { nftables: tables.filter((table) => table !== undefined) };
      };
      return { backend, ruleSet };
    },
    filter: (options) => createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs }),
  };
}

const rows = conformanceTable.map(nftablesRow).filter(({ expected }) => !("skip" in expected.nftables));

describe.each<[string, string, string, Alongside["refuses"]]>([
  ["an agent with a name alongside the first", "edge", "", "unknown ClusterIPs"],
  ["the first alongside an agent with a name", "", "edge", "nothing of others"],
  ["an agent with a name alongside another one", "edge", "inner", "nothing of others"],
])("%s", (_, serving, other, refuses) => {
  test.each(rows)("$name", async (row) => {
    const ways = await runCase(row, alongsideWith(serving, other));
    const expected = alongsideExpected(row, { isFirst: serving === "", refuses });
    if ("skip" in expected) throw new Error(expected.skip);
    expect(differences(expectedWays(expected), ways, { probabilities: true, uneven: 0.005 })).toEqual([]);
  });
});

test("what one does to its table, its removal included, leaves the other's as it is", async () => {
  const fake = new FakeNftables();
  const first = createNftablesBackend(fake, { family: "IPv4" });
  const named = createNftablesBackend(fake, { family: "IPv4", serviceProxyName: "edge" });
  for (const backend of [first, named]) await backend.sync(EMPTY_PLAN.IPv4);
  const tables = () => ["kube-proxy", "fairlead-edge"].map((name) => fake.tableNow("ip", name));
  const [before] = tables();
  expect(await removeNftablesMode(fake, "IPv4", "edge")).toBe(true);
  expect(tables()).toEqual([before, undefined]);
  await named.sync(EMPTY_PLAN.IPv4);
  const [, own] = tables();
  await first.cleanup();
  expect(tables()).toEqual([undefined, own]);
});
