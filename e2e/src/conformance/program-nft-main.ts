import { createNftablesBackend, tableName } from "@fairlead/backend-nftables";
import { IP_FAMILIES } from "@fairlead/base";
import { openNftables } from "@fairlead/kernel";
import type { NftTable } from "@fairlead/netfilter/nft";
import { conformanceTable, differences, expectedWays, nftablesRow, tracedWays } from "@fairlead/testkit";
import { answerLines } from "../support/answer-lines.ts";
import { type CaseGroup, groupCases } from "./groups.ts";
import { syncGroup } from "./sync-group.ts";

/**
 * Programs the network namespace that it runs in with a group of the conformance table, whose number it is sent, and
 * answers by row what the tracer says otherwise over what the kernel then holds.
 */
const client = await openNftables();
const groups = groupCases(conformanceTable.map(nftablesRow));

async function program({ options, rows, history }: CaseGroup): Promise<Readonly<Record<string, readonly string[]>>> {
  const { masqueradeAll } = options;
  const backends = IP_FAMILIES.map((family) => createNftablesBackend(client, { family, masqueradeAll }));
  await syncGroup({ options, rows, history }, backends);
  const nftables: NftTable[] = [];
  for (const family of ["ip", "ip6"] as const) {
    const table = await client.table(family, tableName(""));
    if (table !== undefined) nftables.push(table);
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
