import {
  BUILTIN_CHAINS,
  type ChainState,
  parseList,
  type Rule,
  type RuleSet,
  SaveParser,
  type Table,
  type TableState,
} from "@fairlead/netfilter";
import type { IPFamily } from "../family.ts";
import { CommandError } from "../runner/command-error.ts";
import type { Argv, Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import { chainTexts } from "./chain-texts.ts";
import type { ChainsThere } from "./chains-there.ts";
import { chooseTools, type ToolChoice, toolsFound, toolsInUse } from "./choose-tools.ts";
import type { IptablesClient } from "./client.ts";
import { explain, isNoChain } from "./explain.ts";
import type { Glance } from "./glance.ts";
import type { TablesThere } from "./tables-there.ts";
import type { ToolsOf } from "./tools.ts";
import { TransactionSize } from "./transaction-size.ts";
import type { Variant } from "./variant.ts";

/** Which tools are used, and how. */
export interface IptablesOptions extends ToolChoice {
  /**
   * How the kernel is asked of tables without their rules. Default: it is not, as a runner may work in another
   * namespace.
   */
  readonly glance?: (family: IPFamily, variant: Variant) => Glance;
  /** Asked for names of chains before a tool is. Default: it is not, for the same reason. */
  readonly chainsThere?: (family: IPFamily, variant: Variant) => ChainsThere;
  /** Seconds to wait for the xtables lock. Default 5, and 300 where the legacy variant restores. */
  readonly lockSeconds?: number;
  /** Milliseconds one restore or save may take. Default 600,000: large tables take minutes on slow machines. */
  readonly timeoutMs?: number;
}

/**
 * The legacy tool waits for its lock by an alarm, and leaves it set: so long after its start it interrupts the reading
 * of the payload, which then looks cut off ("COMMIT expected"). On a busy machine a large one takes much longer than a
 * lock is held.
 */
const RESTORE_LOCK_SECONDS: Readonly<Record<Variant, number>> = { nft: 5, legacy: 300 };

/**
 * Finds the tools of a family and gives its client.
 *
 * @throws IptablesError of kind "not-installed", "too-old" or "no-permission"
 */
export async function openIptables(runner: Runner, options: IptablesOptions): Promise<IptablesClient> {
  return client(runner, toolsFound(await chooseTools(runner, options)), options);
}

/**
 * The clients of all variants in which this network namespace has something, for a clean-up: what a host's tools
 * were yesterday, they need not be today.
 *
 * @param options `areThere`: as `toolsInUse` has it
 * @throws IptablesError of kind "not-installed" where there are no tools for what may be there; where the kernel says
 *   what is there, the first use of a tool throws it
 */
export async function openIptablesInUse(
  runner: Runner,
  options: Omit<IptablesOptions, "variant"> & { readonly areThere?: TablesThere },
): Promise<readonly IptablesClient[]> {
  const used = await toolsInUse(runner, options.family, options.areThere);
  return used.map((tools) => client(runner, tools, options));
}

function client(runner: Runner, { variant, find }: ToolsOf, options: Omit<IptablesOptions, "variant">): IptablesClient {
  const { family, timeoutMs = 600_000 } = options;
  const wait = String(options.lockSeconds ?? 5);
  const restoreWait = String(options.lockSeconds ?? RESTORE_LOCK_SECONDS[variant]);
  const restoreArgv = async (): Promise<Argv> => [(await find()).restore, "--noflush", "--counters", "-w", restoreWait];
  const saved = async (...args: readonly string[]) => runner.stream([(await find()).save, ...args], { timeoutMs });
  const size = new TransactionSize();
  const there = options.chainsThere?.(family, variant);
  return {
    family,
    variant,
    restore: async (payload) => {
      const argv = await restoreArgv();
      return size.restore(payload, (input) => runner.run(argv, { input, timeoutMs }));
    },
    save: async (table) => {
      const tables = await save(await saved("-t", table), family);
      return withBuiltins(table, tables.get(table));
    },
    saveTables: async (tables) => {
      const all = await save(await saved(), family);
      return new Map(tables.map((table) => [table, withBuiltins(table, all.get(table))]));
    },
    saveLines: (table) => savedLines(() => saved("-t", table)),
    chains: async (table) => (await there?.all(table)) ?? chainNames(await saved("-t", table), table),
    list: async (table, chain, number) => {
      if ((await there?.has(table, chain)) === false) return undefined;
      const which = number === undefined ? [chain] : [chain, String(number)];
      return list(runner, [(await find()).iptables, "-w", wait, "-t", table, "-S", ...which], { table, chain, family });
    },
    texts: async (table, chains) => chainTexts(runner, await find(), table, chains, wait),
    ...(options.glance && { glance: options.glance(family, variant) }),
  };
}

async function save(saved: AsyncIterable<string>, family: IPFamily): Promise<RuleSet> {
  const parser = new SaveParser({ family, lenient: true });
  await explained(async () => {
    for await (const piece of saved) parser.push(piece);
  });
  return parser.end();
}

/** An unused table is not printed, but has its built-in chains. */
function withBuiltins(table: Table, state: TableState | undefined): TableState {
  const chains = new Map<string, ChainState>();
  for (const name of BUILTIN_CHAINS[table]) chains.set(name, { name, policy: "ACCEPT", rules: [] });
  for (const [name, chain] of state?.chains ?? []) chains.set(name, chain);
  return { table, chains };
}

async function* savedLines(saved: () => Promise<AsyncIterable<string>>): AsyncGenerator<string, void, void> {
  try {
    yield* lines(await saved());
  } catch (error) {
    throw error instanceof CommandError ? explain(error) : error;
  }
}

async function chainNames(saved: AsyncIterable<string>, table: Table): Promise<ReadonlySet<string>> {
  const names = new Set(BUILTIN_CHAINS[table]);
  // Chains stand before the first rule; what looks like one behind it is in a comment.
  let declaring = true;
  await explained(async () => {
    for await (const line of lines(saved)) {
      if (line.startsWith("-")) declaring = false;
      else if (declaring && line.startsWith(":")) names.add(line.slice(1, line.indexOf(" ")));
    }
  });
  return names;
}

async function list(
  runner: Runner,
  argv: Argv,
  { table, chain, family }: { table: Table; chain: string; family: IPFamily },
): Promise<readonly Rule[] | undefined> {
  try {
    const { stdout } = await runner.run(argv);
    return parseList(stdout, table, { family, lenient: true }).chains.get(chain)?.rules ?? [];
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (isNoChain(error)) return undefined;
    throw explain(error);
  }
}

async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof CommandError ? explain(error) : error;
  }
}
