import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeNftables } from "@fairlead/kernel/fake";
import { NFT_FAMILY } from "@fairlead/netfilter/nft";
import {
  type BackendsUnderTest,
  conformanceTable,
  differences,
  expectedWays,
  nftablesRow,
  runCase,
} from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { createNftablesBackend, tableName } from "../src/index.ts";

const subjects = (fastPath: boolean): BackendsUnderTest => ({
  open: (family) => {
    const fake = new FakeNftables();
    const backend = createNftablesBackend(fake, { family, fastPath });
    const ruleSet = async () => {
      const table = await fake.table(NFT_FAMILY[family], tableName(""));
      return { nftables: table === undefined ? [] : [table] };
    };
    return { backend, ruleSet };
  },
  filter: (options) => createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs }),
});

const rows = conformanceTable.map(nftablesRow);

/** The fast path is for connections that are established: it decides for no first packet. */
describe.each([false, true])("nftables mode, fast path %j", (fastPath) => {
  test.each(rows.filter(({ expected }) => !("skip" in expected.nftables)))("$name", async (row) => {
    const { nftables } = row.expected;
    if ("skip" in nftables) throw new Error(nftables.skip);
    const ways = await runCase(row, subjects(fastPath));
    expect(differences(expectedWays(nftables), ways, { probabilities: true, uneven: 0.005 })).toEqual([]);
  });

  test("the table leaves one row open, of an address that no service of this proxy has", () => {
    const open = rows.filter(({ expected }) => "skip" in expected.nftables);
    expect(open.map(({ name }) => name)).toEqual(["cluster IP: another proxy's service is left"]);
  });
});
