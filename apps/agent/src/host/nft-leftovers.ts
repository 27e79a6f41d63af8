import type { IPFamily } from "@fairlead/core";
import { CommandError, isNftTableThere, type Runner } from "@fairlead/kernel";

/** kube-proxy's nftables mode has one table for each family. */
const TABLE = "kube-proxy";
const families = [
  ["ip", "IPv4"],
  ["ip6", "IPv6"],
] as const satisfies readonly (readonly [name: string, family: IPFamily])[];

/**
 * Removes what kube-proxy's nftables mode left. Without the nft tool nothing is done.
 *
 * @param isThere whether the kernel has such a table; undefined: it does not say, and the deletion is tried
 * @returns what was removed, as nft names it: `table ip kube-proxy`
 * @throws CommandError when nft cannot delete
 */
export async function removeNftTables(
  runner: Runner,
  isThere: (family: IPFamily, name: string) => Promise<boolean | undefined> = isNftTableThere,
): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const [name, family] of families) {
    if ((await isThere(family, TABLE)) === false) continue;
    if (await deleteTable(runner, name)) removed.push(`table ${name} ${TABLE}`);
  }
  return removed;
}

async function deleteTable(runner: Runner, family: string): Promise<boolean> {
  try {
    await runner.run(["nft", "delete", "table", family, TABLE]);
    return true;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (error.reason === "not-found" || error.stderr.includes("No such file or directory")) return false;
    throw error;
  }
}
