import { nftablesFacts, planTable } from "@fairlead/backend-nftables";
import { tableLines } from "@fairlead/netfilter/nft";
import type { InspectedMode } from "./mode.ts";

const tables: InspectedMode["tables"] = (plan, { config }) => {
  const { serviceProxyName, masqueradeAll, masqueradeBit } = config;
  return [planTable(plan, { serviceProxyName, masqueradeAll, masqueradeBit })];
};

export const nftables = {
  facts: nftablesFacts,
  tables,
  /** The agent itself writes by netlink; this is what `nft` takes for the same, whatever there was of the table. */
  async dryRun(plan, settings, texts) {
    for (const table of tables(plan, settings)) {
      const name = `table ${table.family} ${table.name}`;
      const lines = [name, `delete ${name}`, ...tableLines(table)];
      await texts.add(
        ["nft", "-f", "-"],
        lines.map((line) => `${line}\n`),
      );
    }
  },
} as const satisfies InspectedMode;
