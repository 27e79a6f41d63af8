import { CommandError, type Runner } from "@fairlead/kernel";

/** The tables of kube-proxy's nftables mode. */
const tables: readonly (readonly [family: string, name: string])[] = [
  ["ip", "kube-proxy"],
  ["ip6", "kube-proxy"],
];

/**
 * Removes what kube-proxy's nftables mode left. Without the nft tool nothing can be seen of it, and nothing is done.
 *
 * @returns what was removed, as nft names it: `table ip kube-proxy`
 * @throws CommandError when nft cannot look or delete
 */
export async function removeNftTables(runner: Runner): Promise<readonly string[]> {
  const existing = await listTables(runner);
  const removed: string[] = [];
  for (const [family, name] of tables) {
    const line = `table ${family} ${name}`;
    if (!existing.has(line)) continue;
    await runner.run(["nft", "delete", "table", family, name]);
    removed.push(line);
  }
  return removed;
}

async function listTables(runner: Runner): Promise<ReadonlySet<string>> {
  try {
    const { stdout } = await runner.run(["nft", "list", "tables"]);
    return new Set(stdout.split("\n"));
  } catch (error) {
    if (error instanceof CommandError && error.reason === "not-found") return new Set();
    throw error;
  }
}
