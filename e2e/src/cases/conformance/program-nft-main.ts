import { createNftablesBackend, tableName } from "@fairlead/backend-nftables";
import { IP_FAMILIES } from "@fairlead/base";
import { openNftables } from "@fairlead/kernel";
import { answerLines } from "@fairlead/lab/support/script";
import type { NftTable } from "@fairlead/netfilter/nft";
import { differences, expectedWays, tracedWays } from "@fairlead/testkit";
import { type CaseGroup, EMPTY_CLUSTER, groupCases, nftTable, syncGroup } from "./groups.ts";

/**
 * Programs the network namespace that it runs in with a group of the conformance table, whose number it is sent, and
 * answers by row what the tracer says otherwise over what the kernel then holds. With arguments it is the table of that
 * service proxy name, thinned, and the node's first proxy has one alongside it without a service.
 */
const [, , serviceProxyName = "", every = "1"] = process.argv;
const names = new Set(["", serviceProxyName]);
const client = await openNftables();
const groups = groupCases(nftTable(serviceProxyName, Number(every)));

async function program({ options, rows, history }: CaseGroup): Promise<Readonly<Record<string, readonly string[]>>> {
  for (const name of names) {
    const backends = IP_FAMILIES.map((family) => createNftablesBackend(client, { family, serviceProxyName: name }));
    const serves = name === serviceProxyName;
    await syncGroup({ options, rows, history: serves ? history : [EMPTY_CLUSTER] }, backends);
  }
  const nftables: NftTable[] = [];
  for (const family of ["ip", "ip6"] as const) {
    for (const name of names) {
      const table = await client.table(family, tableName(name));
      if (table !== undefined) nftables.push(table);
    }
  }
  return Object.fromEntries(
    rows.flatMap((row) => {
      const expected = row.expected.nftables;
      if ("skip" in expected) return [];
      const traced = tracedWays(row, { nftables });
      return [[row.name, differences(expectedWays(expected), traced, { probabilities: true, uneven: 0.005 })]];
    }),
  );
}

answerLines(async (line) => {
  const group = groups[Number(line)];
  if (group === undefined) throw new Error(`there is no group ${line}`);
  return JSON.stringify(await program(group));
});
