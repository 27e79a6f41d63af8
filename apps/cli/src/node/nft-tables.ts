import { type Argv, CommandError, type IPFamily, type NftTableName, type Runner } from "@fairlead/kernel";
import { NFT_FAMILY, type NftTable, readTables, readTablesFromJson } from "@fairlead/netfilter/nft";
import { tablesFromJson } from "./table-json.ts";
import { TABLES } from "./tables-call.ts";

/** The tables of iptables' nft variant: they are read as iptables prints them. */
const OF_IPTABLES: ReadonlySet<string> = new Set(["filter", "nat", "mangle", "raw", "security"]);

export function isOfIptables(name: string): boolean {
  return OF_IPTABLES.has(name);
}

/** Milliseconds and bytes that a listing of a very large table may take. */
const LIMITS = { timeoutMs: 120_000, maxStdout: 1 << 30 };

/**
 * The tables of nftables of a kernel in one family, without those of iptables: by netlink where the runner's `fairlead`
 * has it, else by nft. Undefined: they cannot be listed.
 */
export async function tablesIfSeen(runner: Runner, family: IPFamily): Promise<readonly NftTable[] | undefined> {
  const told = await stdoutOf(runner, ["fairlead", TABLES, NFT_FAMILY[family]]);
  if (told !== undefined) return tablesFromJson(told);
  const names = await namesByTool(runner);
  if (names === undefined) return undefined;
  const tables: NftTable[] = [];
  for (const { family: of, name } of names) {
    if (of !== NFT_FAMILY[family] || isOfIptables(name)) continue;
    const listed = await stdoutOf(runner, ["nft", "list", "table", of, name]);
    if (listed === undefined) return undefined;
    tables.push(...readTables(listed));
  }
  return tables;
}

/** The names of all tables of nftables, those of iptables among them. Undefined: they cannot be listed. */
export async function tableNames(runner: Runner): Promise<readonly NftTableName[] | undefined> {
  const told = await stdoutOf(runner, ["fairlead", TABLES]);
  return told === undefined ? namesByTool(runner) : JSON.parse(told);
}

/**
 * Listing flowtables names every table and reads nothing else; `list tables` and `list ruleset` read all rules of
 * iptables too, a minute for 10,000 services (nftables 1.0).
 */
async function namesByTool(runner: Runner): Promise<readonly NftTableName[] | undefined> {
  const text = await stdoutOf(runner, ["nft", "list", "flowtables"]);
  if (text === undefined) return undefined;
  return [...text.matchAll(/^table (\S+) (\S+) \{$/gm)].map(([, family = "", name = ""]) => ({ family, name }));
}

async function stdoutOf(runner: Runner, argv: Argv): Promise<string | undefined> {
  try {
    return (await runner.run(argv, LIMITS)).stdout;
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
