import { CommandError, type IPFamily, type Runner } from "@fairlead/kernel";
import { NFT_FAMILY, type NftTable, readTables, readTablesFromJson } from "@fairlead/netfilter/nft";

/** The tables of iptables' nft variant: they are read as iptables prints them. */
const OF_IPTABLES: ReadonlySet<string> = new Set(["filter", "nat", "mangle", "raw", "security"]);

/** Milliseconds and bytes that a listing of a very large table may take. */
const LIMITS = { timeoutMs: 120_000, maxStdout: 1 << 30 };

/**
 * The tables of nftables of a kernel in one family, without those of iptables. Listing flowtables names every table and
 * reads nothing else; `list tables` and `list ruleset` read all rules of iptables too, a minute for 10,000 services
 * (nftables 1.0).
 *
 * @throws CommandError when nft is not there, or they may not be listed
 */
async function liveTables(runner: Runner, family: IPFamily): Promise<readonly NftTable[]> {
  const { stdout } = await runner.run(["nft", "list", "flowtables"], LIMITS);
  const names = [...stdout.matchAll(/^table (\S+) (\S+) \{$/gm)].flatMap(([, of, name = ""]) =>
    of === NFT_FAMILY[family] && !OF_IPTABLES.has(name) ? [name] : [],
  );
  const tables: NftTable[] = [];
  for (const name of names) {
    const listed = await runner.run(["nft", "list", "table", NFT_FAMILY[family], name], LIMITS);
    tables.push(...readTables(listed.stdout));
  }
  return tables;
}

/** As `liveTables`; undefined, where they cannot be listed. */
export async function tablesIfSeen(runner: Runner, family: IPFamily): Promise<readonly NftTable[] | undefined> {
  try {
    return await liveTables(runner, family);
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

/** How `nft -j list` begins. */
export const JSON_LISTING = /^\s*\{\s*"nftables"\s*:/;

/**
 * The tables of one family in a text that `nft list`, `nft -j list` or `fairlead plan` printed.
 *
 * @throws SyntaxError when it begins as JSON and is not
 */
export function tablesIn(text: string, family: IPFamily): readonly NftTable[] {
  const tables = JSON_LISTING.test(text) ? readTablesFromJson(JSON.parse(text)) : readTables(text);
  return tables.filter((table) => table.family === NFT_FAMILY[family]);
}
