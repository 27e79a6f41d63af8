import {
  type IPFamily,
  parseRestore,
  type Rule,
  RuleParseError,
  type RuleSet,
  renderRule,
  renderRuleSet,
  type Table,
  type TableCommands,
  type TableState,
} from "@fairlead/netfilter";
import { explain } from "../iptables/error.ts";
import { type IptablesClient, TransactionSize } from "../iptables/open.ts";
import type { Variant } from "../iptables/tables-there.ts";
import { type Argv, CommandError, type Input, lines } from "../runner.ts";
import { Faults, killed, singleStep } from "./faults.ts";
import { carryOut, type FakeKernel } from "./iptables-checks.ts";
import { FakeTable, TableDraft } from "./iptables-draft.ts";

/** The tools and the kernel that the fake stands for. */
export interface FakeIptablesOptions {
  /** iptables or ip6tables. */
  readonly family: IPFamily;
  /** Default nft. */
  readonly variant?: Variant;
  /** Shared with other fakes; default: its own, without any fault. */
  readonly faults?: Faults;
  /** The counters that rules may name, a `FakeNfacct` for example. Default: none. */
  readonly nfacct?: { has(name: string): boolean };
  /** The ipsets that rules may name. Default: none. */
  readonly sets?: { has(name: string): boolean };
  /** Matches and targets that this kernel has not, `["statistic"]`; a Set may change later. */
  readonly lacking?: Iterable<string>;
  /** Characters of commands that the kernel takes in one transaction, as in a user namespace. Default: any number. */
  readonly room?: number;
  /** Whether the kernel is asked of tables without their rules, as of nf_tables' generation. Default: it is not. */
  readonly glances?: boolean;
}

const TABLES: readonly Table[] = ["filter", "nat", "mangle", "raw", "security"];
/** Seconds that the real client waits for the xtables lock. */
const WAIT = "5";

/**
 * The iptables of one family in memory. It parses what it is given, each table of a payload is a transaction, and it
 * refuses what the tools of the nft variant refuse, with the line; of what the kernel refuses only extensions that it
 * lacks and counters that are not there. The legacy variant differs in its name only.
 */
export class FakeIptables implements IptablesClient {
  /** iptables or ip6tables. */
  readonly family: IPFamily;
  readonly variant: Variant;
  /** What goes wrong, and which calls there were. */
  readonly faults: Faults;
  readonly glance?: NonNullable<IptablesClient["glance"]>;
  /** While true, restores end without an error and write nothing. */
  lies = false;
  #generation = 0;
  readonly #kernel: FakeKernel;
  readonly #room: number;
  readonly #size = new TransactionSize();
  readonly #tables = new Map(TABLES.map((name) => [name, new FakeTable(name)]));

  constructor(options: FakeIptablesOptions) {
    this.family = options.family;
    this.variant = options.variant ?? "nft";
    this.faults = options.faults ?? new Faults();
    this.#room = options.room ?? Number.POSITIVE_INFINITY;
    if (options.glances) this.glance = async () => ({ state: String(this.#generation) });
    const none = new Set<string>();
    this.#kernel = {
      family: this.family,
      sets: options.sets ?? none,
      nfacct: options.nfacct ?? none,
      lacking: options.lacking instanceof Set ? options.lacking : new Set(options.lacking),
    };
  }

  async restore(payload: Input): Promise<void> {
    const argv: Argv = [this.#tool("-restore"), "--noflush", "--counters", "-w", WAIT];
    await this.#size.restore(payload, async (input) => {
      const fault = await this.faults.enter(argv);
      let left = fault?.kind === "kill" ? (fault.transactions ?? 0) : Number.POSITIVE_INFINITY;
      for await (const section of sections(lines(input))) {
        if (left <= 0) throw killed(argv);
        checkRoom(section, this.#room, argv);
        if (!this.lies) this.#restore(section, argv);
        left -= 1;
      }
      if (fault !== undefined) throw killed(argv);
    });
  }

  save(table: Table): Promise<TableState> {
    return this.#do([this.#tool("-save"), "-t", table], () => this.table(table));
  }

  saveTables(tables: readonly Table[]): Promise<ReadonlyMap<Table, TableState>> {
    return this.#do([this.#tool("-save")], () => new Map(tables.map((table) => [table, this.table(table)])));
  }

  async *saveLines(table: Table): AsyncGenerator<string, void, void> {
    for (const piece of renderRuleSet(new Map([[table, await this.save(table)]]))) yield* piece.trimEnd().split("\n");
  }

  chains(table: Table): Promise<ReadonlySet<string>> {
    return this.#do([this.#tool("-save"), "-t", table], () => new Set(this.#table(table).chains.keys()));
  }

  list(table: Table, chain: string, number?: number): Promise<readonly Rule[] | undefined> {
    const which = number === undefined ? [chain] : [chain, String(number)];
    return this.#do([this.#tool(""), "-w", WAIT, "-t", table, "-S", ...which], () => {
      const rules = this.#table(table).chains.get(chain)?.rules;
      return number === undefined ? rules : rules?.slice(number - 1, number);
    });
  }

  texts(table: Table, chains: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    return this.#do([this.#tool("-restore"), "--noflush", "-w", WAIT], () => {
      const texts = new Map<string, readonly string[]>();
      for (const chain of chains) {
        const rules = this.#table(table).chains.get(chain)?.rules;
        if (rules !== undefined) texts.set(chain, rules.map(renderRule));
      }
      return texts;
    });
  }

  /** The table as it is now, without a call. */
  table(table: Table): TableState {
    return this.#table(table).state();
  }

  /** All tables as they are now, for a packet tracer. */
  ruleSet(): RuleSet {
    return new Map(TABLES.map((name) => [name, this.table(name)]));
  }

  /**
   * What another process does with iptables-restore: no call of ours, no fault.
   *
   * @throws IptablesError when the text would be refused
   */
  async meddle(text: string): Promise<void> {
    await new TransactionSize().restore(text, async (input) => {
      for await (const section of sections(lines(input))) this.#restore(section, [this.#tool("-restore")]);
    });
  }

  /** `iptables -t TABLE -F`, by hand; with `chains` also `-X`. */
  flush(table: Table, { chains = false }: { readonly chains?: boolean } = {}): void {
    const fresh = new FakeTable(table);
    for (const { name, policy } of this.#table(table).chains.values()) {
      if (chains && !fresh.isBuiltin(name)) continue;
      fresh.chains.set(name, { name, ...(policy && { policy }), rules: [] });
    }
    this.#tables.set(table, fresh);
    this.#generation += 1;
  }

  /** Carries out one section of a payload: all of it or nothing. */
  #restore({ firstLine, lines: texts, complete }: Section, argv: Argv): void {
    const end = firstLine + texts.length - 1;
    if (!complete) throw refused(argv, end + 1, "COMMIT expected");
    const numbers = texts.flatMap((line, index) => (/^(?:#|\*|COMMIT\s*$|$)/.test(line) ? [] : [firstLine + index]));
    for (const { table, commands } of this.#parse(texts, firstLine, argv)) {
      const draft = new TableDraft(this.#table(table));
      const numbered = commands.map((command, index) => ({ line: numbers[index] ?? end, command }));
      const fault = carryOut(this.#kernel, draft, numbered);
      if (fault !== undefined) throw refused(argv, fault.line, fault.words);
      draft.commit();
      this.#generation += 1;
    }
  }

  #parse(texts: readonly string[], firstLine: number, argv: Argv): readonly TableCommands[] {
    try {
      return parseRestore(texts.join("\n"), { family: this.family });
    } catch (error) {
      if (!(error instanceof RuleParseError)) throw error;
      throw refused(argv, firstLine + error.line - 1, error.message);
    }
  }

  #do<T>(argv: Argv, work: () => T): Promise<T> {
    return explained(() => singleStep(this.faults, argv, work));
  }

  #table(name: Table): FakeTable {
    return this.#tables.get(name) ?? new FakeTable(name);
  }

  #tool(suffix: string): string {
    return `${this.family === "IPv4" ? "iptables" : "ip6tables"}-${this.variant}${suffix}`;
  }
}

async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof CommandError ? explain(error) : error;
  }
}

/** How a tool ends that refuses a line. */
function refused(argv: Argv, line: number, words: string): CommandError {
  const stderr = `${argv[0]}: line ${line} failed: ${words}\n`;
  return new CommandError({ argv, reason: "exit", exitCode: 1, stderr });
}

/** One `*table … COMMIT` of a payload. */
interface Section {
  /** Number of its first line in the payload, from 1. */
  readonly firstLine: number;
  /** All its lines; comments and empty ones too, so that numbers stay right. */
  readonly lines: readonly string[];
  /** False: the payload ended before the COMMIT. */
  readonly complete: boolean;
}

/** Cuts a payload into its sections as it comes, each as soon as it is complete. */
async function* sections(payload: AsyncIterable<string>): AsyncGenerator<Section, void, void> {
  let held: string[] = [];
  let firstLine = 1;
  for await (const line of payload) {
    held.push(line);
    if (line.trimEnd() !== "COMMIT") continue;
    yield { firstLine, lines: held, complete: true };
    firstLine += held.length;
    held = [];
  }
  if (held.some((line) => line !== "" && !line.startsWith("#"))) yield { firstLine, lines: held, complete: false };
}

/**
 * What the kernel has room for in one netlink message.
 *
 * @throws CommandError as iptables-nft-restore ends
 */
function checkRoom({ firstLine, lines: texts }: Section, room: number, argv: Argv): void {
  const size = texts.slice(1, -1).reduce((sum, { length }) => sum + length + 1, 0);
  if (size > room) throw refused(argv, firstLine + texts.length - 1, "Message too long");
}
