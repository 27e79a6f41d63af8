/** The iptables client: runs iptables-save and iptables-restore, and cuts what is too large for one transaction. */

import {
  BUILTIN_CHAINS,
  type ChainState,
  type IptablesPort,
  listedTexts,
  parseList,
  type Rule,
  type RuleSet,
  SaveParser,
  type Table,
  type TableState,
} from "@fairlead/netfilter";
import type { IPFamily } from "../family.ts";
import { type Argv, CommandError, type Input, lines, type Runner } from "../runner.ts";
import { explain, IptablesError, isNoChain, KEPT, PayloadTail } from "./error.ts";
import {
  type ChainsThere,
  type Glance,
  LostRules,
  type RuleCounts,
  type TablesThere,
  type Variant,
} from "./tables-there.ts";
import { chooseTools, type ToolChoice, type Tools, type ToolsOf, toolsFound, toolsInUse } from "./tools.ts";

/** Which tools are used, and how. */
export interface IptablesOptions extends ToolChoice {
  /**
   * How the kernel is asked of tables without their rules. Default: it is not, as a runner may work in another
   * namespace.
   */
  readonly glance?: (family: IPFamily, variant: Variant) => Glance;
  /** How the kernel is asked how many rules there are. Default: it is not, for the same reason. */
  readonly ruleCounts?: (family: IPFamily, variant: Variant) => RuleCounts;
  /** Asked for names of chains before a tool is. Default: it is not, for the same reason. */
  readonly chainsThere?: (family: IPFamily, variant: Variant) => ChainsThere;
  /** Seconds to wait for the xtables lock. Default 5, and 300 where the legacy variant restores. */
  readonly lockSeconds?: number;
  /** Milliseconds one restore or save may take. Default 600,000: large tables take minutes on slow machines. */
  readonly timeoutMs?: number;
}

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

/**
 * The iptables of one family. Rules of others are read leniently: one that can't be read stands as its text (a match of
 * kind "unreadable"), and stops nothing. `FakeIptables` is one, too.
 */
export interface IptablesClient extends IptablesPort {
  /**
   * @throws IptablesError with the number and text of the line, its `cause` the CommandError; the table that failed is
   * as it was
   */
  restore(payload: Input): Promise<void>;
}

/**
 * How large a transaction may be. The nft variant sends a transaction as one netlink message and asks the kernel for
 * the room with SO_SNDBUFFORCE (iptables 1.8, nft.c), which works only in the initial user namespace. Elsewhere
 * net.core.wmem_default is the limit. How many rules fit depends on the tool's version, so a refused transaction halves
 * the size of all that follow.
 */
export class TransactionSize {
  /** Characters of commands. */
  #most = Number.POSITIVE_INFINITY;

  /**
   * Has a tool read a payload.
   *
   * @throws IptablesError for a CommandError of the tool; of kind "too-large": what follows is smaller, try again
   */
  async restore(payload: Input, run: (input: AsyncIterable<string>) => Promise<unknown>): Promise<void> {
    const tail = new PayloadTail();
    try {
      await run(tail.watch(this.#cut(typeof payload === "string" ? [payload] : payload)));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      const explained = explain(error, tail);
      throw explained.kind === "too-large" ? this.#halve(explained, error, tail) : explained;
    }
  }

  #cut(payload: Exclude<Input, string>): Exclude<Input, string> {
    return this.#most === Number.POSITIVE_INFINITY ? payload : cutTransactions(payload, this.#most);
  }

  #halve({ message, line = 0 }: IptablesError, cause: CommandError, tail: PayloadTail): IptablesError {
    const commands = tail.transaction(line);
    if (commands?.length === 1) {
      const [text = ""] = commands;
      return new IptablesError("too-large", `${message}: the line "${text}" by itself`, { cause, line, text });
    }
    const size = commands?.reduce((sum, { length }) => sum + length + 1, 0) ?? KEPT;
    this.#most = Math.ceil(size / 2);
    const next = `from now on transactions have at most ${this.#most} characters`;
    const limit = "in a user namespace net.core.wmem_default is the limit";
    return new IptablesError("too-large", `${message}: it has ${size} characters; ${limit}; ${next}`, { cause, line });
  }
}

/**
 * Cuts the transactions of a payload: each has at most that many characters of commands, or one line. A chain that is
 * made goes into one transaction with its rules where they fit, else its rules stand in several.
 */
export async function* cutTransactions(
  payload: Iterable<string> | AsyncIterable<string>,
  most: number,
): AsyncGenerator<string, void, void> {
  const cutter = new Cutter(most);
  for await (const line of lines(payload)) yield* cutter.take(line);
}

/**
 * The legacy tool waits for its lock by an alarm, and leaves it set: so long after its start it interrupts the reading
 * of the payload, which then looks cut off ("COMMIT expected"). On a busy machine a large one takes much longer than a
 * lock is held.
 */
const RESTORE_LOCK_SECONDS: Readonly<Record<Variant, number>> = { nft: 5, legacy: 300 };

function client(runner: Runner, { variant, find }: ToolsOf, options: Omit<IptablesOptions, "variant">): IptablesClient {
  const { family, timeoutMs = 600_000 } = options;
  const wait = String(options.lockSeconds ?? 5);
  const restoreWait = String(options.lockSeconds ?? RESTORE_LOCK_SECONDS[variant]);
  const restoreArgv = async (): Promise<Argv> => [(await find()).restore, "--noflush", "--counters", "-w", restoreWait];
  const saved = async (...args: readonly string[]) => runner.stream([(await find()).save, ...args], { timeoutMs });
  const size = new TransactionSize();
  const there = options.chainsThere?.(family, variant);
  const lost = options.ruleCounts && new LostRules(options.ruleCounts(family, variant));
  return {
    family,
    variant,
    restore: async (payload) => {
      const argv = await restoreArgv();
      const write = () => size.restore(payload, (input) => runner.run(argv, { input, timeoutMs }));
      return lost === undefined ? write() : lost.writing(write);
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
    ...(lost && { lost: (chains) => lost.look(chains) }),
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

/**
 * The rules of several chains, as text. `iptables-restore` takes `-S` like any other command and prints what it lists:
 * one process reads the table once for all of them, and a payload that changes nothing is not committed. It ends at the
 * first chain that is not there; then, or where a version does not do it, each is asked for by a process of its own.
 *
 * @throws IptablesError
 */
async function chainTexts(
  runner: Runner,
  { restore, iptables }: Pick<Tools, "restore" | "iptables">,
  table: Table,
  chains: readonly string[],
  lockSeconds: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const input = [`*${table}`, ...chains.map((chain) => `-S ${chain}`), "COMMIT", ""].join("\n");
  try {
    const { stdout } = await runner.run([restore, "--noflush", "-w", lockSeconds], { input });
    return listedTexts(stdout);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
  }
  const texts = new Map<string, readonly string[]>();
  for (const chain of chains) {
    const listed = await listOne(runner, [iptables, "-w", lockSeconds, "-t", table, "-S", chain]);
    for (const [name, rules] of listedTexts(listed)) texts.set(name, rules);
  }
  return texts;
}

/** What the tool prints; nothing for a chain that is not there. */
async function listOne(runner: Runner, argv: readonly [string, ...string[]]): Promise<string> {
  try {
    return (await runner.run(argv)).stdout;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (isNoChain(error)) return "";
    throw explain(error);
  }
}

class Cutter {
  readonly #most: number;
  /** `*nat` */
  #table = "";
  /** Characters of the transaction that is being written. */
  #written = 0;
  /** Lines that belong together: a chain that is made and the rules behind it. */
  #held: string[] = [];
  #heldSize = 0;

  constructor(most: number) {
    this.#most = most;
  }

  *take(line: string): Generator<string> {
    if (line.startsWith("*")) {
      this.#table = line;
      this.#written = 0;
      yield `${line}\n`;
    } else if (line.trimEnd() === "COMMIT") {
      yield* this.#writeHeld();
      yield `${line}\n`;
    } else {
      if (line.startsWith(":")) yield* this.#writeHeld();
      this.#held.push(line);
      this.#heldSize += size(line);
      if (this.#heldSize > this.#most) yield* this.#writeHeld();
    }
  }

  *#writeHeld(): Generator<string> {
    if (this.#written + this.#heldSize > this.#most) yield* this.#cut();
    for (const line of this.#held) {
      if (this.#written + size(line) > this.#most) yield* this.#cut();
      this.#written += size(line);
      yield `${line}\n`;
    }
    this.#held = [];
    this.#heldSize = 0;
  }

  *#cut(): Generator<string> {
    if (this.#written === 0) return;
    this.#written = 0;
    yield `COMMIT\n${this.#table}\n`;
  }
}

function size(line: string): number {
  return line.length + 1;
}
