import { configuredOptions, nftablesFacts, planTableSteps } from "@fairlead/backend-nftables";
import { inSlices } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import { type NftTable, tableLines } from "@fairlead/netfilter/nft";
import type { DryRunSettings, InspectedMode } from "./mode.ts";

function* tables(plan: ForwardingPlan, { config }: DryRunSettings): Generator<void, readonly NftTable[], void> {
  return [yield* planTableSteps(plan, configuredOptions(config))];
}

export const nftables = {
  facts: nftablesFacts,
  loopbackNodePorts: ({ nftables: { loopbackNodePorts } }, family) => loopbackNodePorts[family],
  fastPath: ({ nftables: { fastPath } }) => fastPath !== undefined,
  tables,
  /** The agent itself writes by netlink; this is what `nft` takes for the same, whatever there was of the table. */
  async dryRun(plan, settings, texts) {
    for (const table of await inSlices(tables(plan, settings))) {
      const name = `table ${table.family} ${table.name}`;
      const lines = [name, `delete ${name}`, ...tableLines(table)];
      await texts.add(
        ["nft", "-f", "-"],
        lines.map((line) => `${line}\n`),
      );
    }
  },
} as const satisfies InspectedMode;
