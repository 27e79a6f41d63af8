import type { IPFamily } from "@fairlead/core";
import { CommandError, isNftTableThere, type NftablesClient, NftablesError, type Runner } from "@fairlead/kernel";
import { NftBatch } from "@fairlead/netfilter/nft";

const FAMILIES = [
  ["ip", "IPv4"],
  ["ip6", "IPv6"],
] as const satisfies readonly (readonly [name: string, family: IPFamily])[];

export interface NftLeftoversParts {
  /** Opens nf_tables by netlink. */
  readonly open: () => Promise<Pick<NftablesClient, "commit" | "close">>;
  /** For the nft tool, where there is no netlink; without the tool nothing is done then. */
  readonly runner: Runner;
  /** Whether the kernel has such a table; undefined: it does not say, and the deletion is tried. */
  readonly isThere?: (family: IPFamily, name: string) => Promise<boolean | undefined>;
}

/**
 * Removes what nftables mode left: kube-proxy's, and ours, has one table for each family.
 *
 * @param table its name in both
 * @returns what was removed, as nft names it: `table ip kube-proxy`
 * @throws NftablesError, CommandError when a table cannot be deleted
 */
export async function removeNftTables(parts: NftLeftoversParts, table: string): Promise<readonly string[]> {
  const { isThere = isNftTableThere } = parts;
  const removed: string[] = [];
  for (const [name, family] of FAMILIES) {
    if ((await isThere(family, table)) === false) continue;
    if (await deleteTable(parts, name, table)) removed.push(`table ${name} ${table}`);
  }
  return removed;
}

async function deleteTable({ open, runner }: NftLeftoversParts, family: "ip" | "ip6", table: string): Promise<boolean> {
  // Why it cannot be opened, the tool will say: it needs the same of the kernel.
  const client = await open().catch(() => undefined);
  if (client === undefined) return deleteByTool(runner, family, table);
  try {
    await client.commit(new NftBatch(family, table).deleteTable());
    return true;
  } catch (error) {
    if (error instanceof NftablesError && error.code === "ENOENT") return false;
    throw error;
  } finally {
    await client.close();
  }
}

async function deleteByTool(runner: Runner, family: string, table: string): Promise<boolean> {
  try {
    await runner.run(["nft", "delete", "table", family, table]);
    return true;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (error.reason === "not-found" || error.stderr.includes("No such file or directory")) return false;
    throw error;
  }
}
