import { createReadStream } from "node:fs";
import { type IPFamily, openIptables, type Runner } from "@fairlead/kernel";
import { LazySaveParser, type SavedRules, type Table } from "@fairlead/netfilter";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";

const TABLES: readonly Table[] = ["raw", "mangle", "nat", "filter", "security"];

/**
 * The rules of a file, of standard input (`-`), or of this host's kernel.
 *
 * @param file what iptables-save or ip6tables-save printed; undefined: the kernel is asked
 * @throws CommandFailure when they cannot be read
 */
export async function readRules(file: string | undefined, family: IPFamily, context: Context): Promise<SavedRules> {
  const parser = new LazySaveParser({ family });
  const source = file === undefined ? "iptables-save" : file;
  try {
    await context.progress(`reading ${source}`, async () => {
      for await (const piece of piecesOf(file, family, context)) parser.push(piece);
    });
    return parser.end();
  } catch (error) {
    throw new CommandFailure(`${source}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

async function* piecesOf(file: string | undefined, family: IPFamily, context: Context): AsyncGenerator<string> {
  if (file === undefined) yield* liveRules(context.runner, family);
  else if (file === "-") yield Buffer.from(await context.readStandardInput()).toString("utf8");
  else yield* createReadStream(file, { encoding: "utf8", highWaterMark: 1 << 20 });
}

async function* liveRules(runner: Runner, family: IPFamily): AsyncGenerator<string> {
  const client = await openIptables(runner, { family });
  const tables = client.variant === "nft" ? TABLES : await legacyTables(runner, family);
  for (const table of tables) for await (const line of client.saveLines(table)) yield `${line}\n`;
}

/** Asking legacy iptables for a table loads it; only those that are there are asked for. */
async function legacyTables(runner: Runner, family: IPFamily): Promise<readonly Table[]> {
  const file = `/proc/net/${family === "IPv4" ? "ip" : "ip6"}_tables_names`;
  const { stdout } = await runner.run(["cat", file]);
  const names = new Set(stdout.split("\n"));
  return TABLES.filter((table) => names.has(table));
}
