import { errorText, inSlices } from "@fairlead/base";
import { payloadText, type Rule, renderRule, restoreLines, type Table } from "@fairlead/netfilter";
import { chainRepairs, type Repair, type Seen } from "./chain-repairs.ts";
import type { Extent } from "./lookout.ts";
import type { ResolvedOptions } from "./options.ts";
import { constantChains, dispatchOf, type ServiceTable, sharedChains, type Wanted } from "./plan/fixed.ts";
import { DISPATCH_CHAINS } from "./plan/frame.ts";
import { CANARY, SERVICES } from "./plan/names.ts";
import type { RulesPort } from "./port.ts";
import { type News, Tallies } from "./tallies.ts";

/** mangle holds a canary only, which goes with the others when somebody flushes everything. */
export async function hasCanary(port: RulesPort): Promise<boolean> {
  const tallies = await port.tally?.("mangle", [CANARY]);
  return (tallies ?? (await port.texts("mangle", [{ chain: CANARY }]))).has(CANARY);
}

/**
 * Looks whether the chains of fixed names hold what they must: the canary, the jumps to our chains, the rules that do
 * not depend on services, and the chains that all services share. Where the kernel tells of single chains, those that
 * are as they were are not read; the others are listed by one process for each table. A chain that somebody has emptied
 * or edited is written again by itself: that takes no full sync.
 */
export class FixedChains {
  readonly #port: RulesPort;
  readonly #options: ResolvedOptions;
  readonly #tallies: Tallies;

  constructor(port: RulesPort, options: ResolvedOptions) {
    this.#port = port;
    this.#options = options;
    this.#tallies = new Tallies(port);
  }

  /** Everything is written anew. */
  forget(): void {
    this.#tallies.forget();
  }

  /** This proxy is about to change what services have in the shared chains. */
  forgetDispatch(): void {
    for (const table of ["filter", "nat"] as const) this.#tallies.forgetSome(table, DISPATCH_CHAINS[table]);
  }

  /**
   * @param extent of the chains that all services share all rules, or their number; where the kernel does not tell
   * that, a first rule
   * @returns how much is known to be there now; undefined: only a full sync brings back what is missing
   */
  async hold(table: ServiceTable, wanted: Wanted, extent: Extent): Promise<Extent | undefined> {
    const news = await this.#tallies.news(table, namesOf(table, wanted));
    if (news.changed.size === 0) return "all";
    const dispatch = await this.#dispatch(table, wanted, news);
    const seen = await this.#see(table, dispatch, extent, news);
    if (seen.read.has(CANARY) && !seen.texts.has(CANARY)) return undefined;
    const texts = await inSlices(textsOf(dispatch, seen.read), this.#options);
    const repairs = chainRepairs(this.#port.family, table, wanted, dispatch, texts, seen);
    if (repairs === undefined || !(await this.#write(table, repairs))) return undefined;
    const written = new Set(repairs.map(({ chain }) => chain));
    news.confirm([...seen.read].filter((chain) => !written.has(chain)));
    return [...news.changed].every((chain) => seen.read.has(chain) || written.has(chain)) ? "all" : "fixed";
  }

  /** What the shared chains must hold; nothing where all of them are as they were. */
  async #dispatch(table: ServiceTable, wanted: Wanted, news: News): Promise<ReadonlyMap<string, readonly Rule[]>> {
    if (!DISPATCH_CHAINS[table].some((chain) => news.changed.has(chain))) return new Map();
    const all = await inSlices(dispatchOf(table, wanted), this.#options);
    return new Map([...all].filter(([chain]) => news.changed.has(chain)));
  }

  async #see(
    table: ServiceTable,
    dispatch: ReadonlyMap<string, readonly Rule[]>,
    extent: Extent,
    news: News,
  ): Promise<Seen> {
    const other = [...dispatch].filter(([chain, { length }]) => (news.count(chain) ?? length) !== length);
    const miscounted = new Set(other.map(([chain]) => chain));
    const isRead = (chain: string) =>
      !miscounted.has(chain) && (!dispatch.has(chain) || extent === "all" || news.wasKnown(chain));
    const read = new Set([...news.changed].filter(isRead));
    // The kernel may tell no number.
    const unknown = news.count(SERVICES) === undefined && !read.has(SERVICES);
    const first = unknown && dispatch.get(SERVICES)?.length ? [{ chain: SERVICES, number: 1 }] : [];
    const asked = [...[...read].map((chain) => ({ chain })), ...first];
    const texts = asked.length === 0 ? new Map<string, readonly string[]>() : await this.#port.texts(table, asked);
    if (first.length > 0 && !texts.has(SERVICES)) miscounted.add(SERVICES);
    const empty = new Set([...miscounted].filter((chain) => !news.count(chain)));
    return { texts, read, miscounted, empty };
  }

  /** @returns false: it cannot be written by itself */
  async #write(table: Table, repairs: readonly Repair[]): Promise<boolean> {
    if (repairs.length === 0) return true;
    const { family } = this.#port;
    const names = [...new Set(repairs.map(({ chain }) => chain))].join(", ");
    const sections = [{ table, commands: repairs.flatMap(({ commands }) => [...commands]) }];
    try {
      await this.#port.restore(payloadText(restoreLines(sections), this.#options.turn));
    } catch (error) {
      const reason = errorText(error);
      this.#options.onProblem(
        `another program changed ${names} in the ${table} table of ${family}, and restoring only that failed; starting a full sync: ${reason}`,
      );
      return false;
    }
    this.#options.onProblem(`another program changed ${names} in the ${table} table of ${family}; restored`);
    return true;
  }
}

function namesOf(table: ServiceTable, { context }: Wanted): readonly string[] {
  const others = [...constantChains(table, context), ...sharedChains(table, context)].map(({ chain }) => chain);
  return [...new Set([CANARY, ...others, ...DISPATCH_CHAINS[table]])];
}

/** Yields after each rule. */
function* textsOf(
  dispatch: ReadonlyMap<string, readonly Rule[]>,
  chains: ReadonlySet<string>,
): Generator<void, ReadonlyMap<string, readonly string[]>> {
  const texts = new Map<string, readonly string[]>();
  for (const [chain, rules] of dispatch) {
    if (!chains.has(chain)) continue;
    const own: string[] = [];
    for (const rule of rules) {
      own.push(renderRule(rule));
      yield;
    }
    texts.set(chain, own);
  }
  return texts;
}
