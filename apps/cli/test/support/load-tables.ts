import { openNftables } from "@fairlead/kernel";
import { type NetworkNamespace, netlinkIn } from "@fairlead/kernel/netns";
import { NftBatch, type NftTable } from "@fairlead/netfilter/nft";

/**
 * Writes tables by netlink, as the agent does: `nft` adds the comparison of a protocol in front of ports, where the
 * agent has it in the key.
 */
export async function loadTables(namespace: NetworkNamespace, tables: readonly NftTable[]): Promise<void> {
  const nft = await openNftables({ open: netlinkIn(namespace).transactions });
  try {
    for (const table of tables) await nft.commit(batchOf(table));
  } finally {
    await nft.close();
  }
}

function batchOf({ family, name, chains, sets }: NftTable): NftBatch {
  const batch = new NftBatch(family, name).addTable();
  for (const chain of chains.values()) batch.addChain(chain);
  for (const set of sets.values()) batch.addSet(set).addElements(set.name, set.elements.values());
  for (const { name: chain, rules } of chains.values()) for (const rule of rules) batch.addRule(chain, rule);
  return batch;
}
