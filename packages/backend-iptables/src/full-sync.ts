import { errorText, inSlices } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import { emptyChain } from "@fairlead/netfilter";
import { BATCH, commit, deleteStale, type Written } from "./commit.ts";
import { type KernelState, readKernel } from "./kernel-state.ts";
import type { ResolvedOptions } from "./options.ts";
import { allChains, fullPlan, natFrame } from "./plan/full.ts";
import { FilterFrame, oldRules } from "./plan/full-filter.ts";
import { CANARY, COUNTERS } from "./plan/names.ts";
import { serviceChainCount } from "./plan/service-chains.ts";
import { renderContext } from "./plan/settings.ts";
import { survey } from "./plan/survey.ts";
import type { RulesPort } from "./port.ts";
import type { Programmed } from "./programmed.ts";
import type { StaleChains } from "./stale-chains.ts";

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
  { counters, kernel }: Found,
  stale: StaleChains,
  options: ResolvedOptions,
): Promise<{ programmed: Programmed; written: Written }> {
  const context = renderContext(options, plan, counters);
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
  if (due.length === 0) return;
  const split = port.variant === "nft" && due.length > BATCH.staleChains;
  try {
    await deleteStale(port, due, split, options);
  } catch (error) {
    const reason = errorText(error);
    options.onProblem(
      `failed to remove ${due.length} stale chains of the nat table; retries at the next full sync: ${reason}`,
    );
  }
  stale.deleted(due, now);
}
