/** A full sync: reads what the kernel holds and writes what differs. */

import { errorText, inSlices } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import {
  emptyChain,
  goesOn,
  type IPFamily,
  isServiceChain,
  parseSave,
  type Rule,
  type TableState,
} from "@fairlead/netfilter";
import type { Programmed } from "./apply.ts";
import type { StaleChains } from "./commit.ts";
import { BATCH, commit, deleteStale, type Written } from "./commit.ts";
import type { ResolvedOptions } from "./options.ts";
import { JUMPS } from "./plan/frame.ts";
import { allChains, digestOf, FilterFrame, fullPlan, natFrame, oldRules, survey } from "./plan/full.ts";
import { serviceChainCount } from "./plan/group.ts";
import { CANARY, COUNTERS } from "./plan/group-names.ts";
import { type KernelParts, renderContext } from "./plan/settings.ts";
import type { RulesPort } from "./port.ts";

/** What a full sync has to know of the kernel before it writes. */
interface KernelState {
  readonly filter: TableState;
  /** Rules of nat's built-in chains, as far as they may lead to ours. */
  readonly natJumps: ReadonlyMap<string, readonly Rule[]>;
  /** Chains of service ports and endpoints, wanted or not, with the digest of what they hold. */
  readonly groupChains: ReadonlyMap<string, string>;
}

/** What the kernel has, counters among it that were made if need be. */
export interface Found {
  readonly counters: ReadonlySet<string>;
  readonly kernel: KernelState;
}

export async function readBeforeSync(port: RulesPort, options: ResolvedOptions): Promise<Found> {
  const [counters, kernel] = await Promise.all([options.counters(COUNTERS), readKernel(port)]);
  return { counters, kernel };
}

/** Makes the kernel equal to the plan, whatever it holds. */
export async function fullSync(
  port: RulesPort,
  plan: ForwardingPlan,
  { kernel, ...parts }: Found & KernelParts,
  stale: StaleChains,
  options: ResolvedOptions,
): Promise<{ programmed: Programmed; written: Written }> {
  const context = renderContext(options, plan, parts);
  const found = await inSlices(survey(plan, context, kernel.groupChains), options);
  const full = await inSlices(fullPlan(plan, context, found), options);
  const old = await inSlices(oldRules(kernel.filter), options);
  const filter = new FilterFrame(full, kernel.filter, old);
  const split = needsBatches(port, plan);
  const work = {
    makeFirst: port.variant === "legacy",
    chains: allChains(full),
    filterFirst: filter.first(),
    nat: natFrame(full, kernel.natJumps),
    filterLast: filter.last(),
    mangle: [emptyChain(CANARY)],
  };
  const written = await commit(port, work, split, options);
  stale.clear();
  stale.add(found.stale);
  await sweep(port, stale, context.large, options);
  return { programmed: { context, totals: full.totals }, written };
}

/** More chains than one payload of the nft variant should hold. */
function needsBatches(port: RulesPort, plan: ForwardingPlan): boolean {
  if (port.variant === "legacy") return false;
  if (plan.endpointCount > BATCH.endpointChains) return true;
  let serviceChains = 0;
  for (const group of plan.groups.values()) serviceChains += serviceChainCount(group);
  return serviceChains > BATCH.serviceChains;
}

/** Stale chains do no harm: one that cannot go because another program's chain leads to it must not fail the sync. */
async function sweep(port: RulesPort, stale: StaleChains, large: boolean, options: ResolvedOptions): Promise<void> {
  const now = options.clock.monotonic();
  const due = stale.due(now, large);
  if (due.length === 0) return void stale.left([]);
  const split = port.variant === "nft" && due.length > BATCH.staleChains;
  try {
    await deleteStale(port, due, split, options);
    stale.left([]);
  } catch (error) {
    if (stale.left(due)) {
      const reason = errorText(error);
      options.onProblem(
        `failed to remove ${due.length} stale chains of the nat table; retries at each full sync, silently: ${reason}`,
      );
    }
  }
  stale.deleted(due, now);
}

async function readKernel(port: RulesPort): Promise<KernelState> {
  const [filter, nat] = await Promise.all([port.save("filter"), readNat(port)]);
  return { filter, ...nat };
}

async function readNat(port: RulesPort): Promise<Omit<KernelState, "filter">> {
  const nat = new NatReader();
  for await (const line of port.saveLines("nat")) nat.read(line);
  return nat.end(port.family);
}

const BUILT_IN: readonly string[] = JUMPS.filter(({ table }) => table === "nat").map(({ chain }) => chain);

/** Reads nat, which may have hundreds of thousands of rules, and keeps a digest for each chain instead of them. */
class NatReader {
  readonly #groupChains = new Map<string, string>();
  readonly #jumpLines: string[] = [];
  /** Chains are declared before the first rule; what looks like one behind it is in a comment. */
  #declaring = true;
  /** A rule that may go on in the next line. */
  #rule: string | undefined;
  /** The chain whose rules are being read; they stand together. */
  #chain = "";
  #rules: string[] = [];

  read(line: string): void {
    if (this.#rule !== undefined && goesOn(this.#rule, line)) this.#rule += `\n${line}`;
    else {
      this.#endRule();
      if (line.startsWith("-A ")) this.#rule = line;
      else if (line.startsWith(":") && this.#declaring) this.#chainLine(line);
    }
  }

  end(family: IPFamily): Omit<KernelState, "filter"> {
    this.#endRule();
    this.#endChain();
    const text = ["*nat", ...BUILT_IN.map((chain) => `:${chain} ACCEPT [0:0]`), ...this.#jumpLines, "COMMIT", ""];
    const chains = parseSave(text.join("\n"), { family, lenient: true }).get("nat")?.chains;
    const natJumps = new Map(BUILT_IN.map((chain) => [chain, chains?.get(chain)?.rules ?? []]));
    return { natJumps, groupChains: this.#groupChains };
  }

  #chainLine(line: string): void {
    const chain = line.slice(1, line.indexOf(" "));
    if (isServiceChain(chain)) this.#groupChains.set(chain, digestOf([]));
  }

  #endRule(): void {
    const rule = this.#rule;
    if (rule === undefined) return;
    this.#rule = undefined;
    this.#declaring = false;
    const end = rule.indexOf(" ", 3);
    const chain = rule.slice(3, end);
    if (BUILT_IN.includes(chain)) this.#jumpLines.push(rule);
    if (!this.#groupChains.has(chain)) return;
    if (chain !== this.#chain) this.#endChain();
    this.#chain = chain;
    this.#rules.push(rule.slice(end + 1));
  }

  #endChain(): void {
    if (this.#chain !== "") this.#groupChains.set(this.#chain, digestOf(this.#rules));
    this.#rules = [];
  }
}
