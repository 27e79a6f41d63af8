import type { NftBatch } from "@fairlead/netfilter/nft";
import type { PlanContext } from "./context.ts";
import { EXCLUDED, excludedElements, tellsClients } from "./excluded-clients.ts";
import { frameChains } from "./frame-chains.ts";
import { frameElements, frameSets } from "./frame-sets.ts";
import type { ElementChanges } from "./pool-changes.ts";

/** Whether the chains that services share are the same in both, so that a change can go from one to the other. */
export function sharesChains(a: PlanContext, b: PlanContext): boolean {
  if (a === b) return true;
  const said = ({ family, mark, masqueradeAll, detector, nodePortAddresses, resetStaleTCP }: PlanContext) =>
    JSON.stringify([family, mark, masqueradeAll, detector, nodePortAddresses === "all", resetStaleTCP]);
  return said(a) === said(b);
}

/** Chains whose rules differ are written anew; sets come before the rules that use them. */
export function changeFrame(before: PlanContext, after: PlanContext, batch: NftBatch, elements: ElementChanges): void {
  if (before === after) return;
  const had = new Set(frameSets(before).map(({ name }) => name));
  const has = frameSets(after);
  for (const set of has) if (!had.has(set.name)) batch.addSet(set);
  const old = new Map(frameChains(before).map((chain) => [chain.name, chain]));
  for (const chain of frameChains(after)) {
    if (JSON.stringify(old.get(chain.name)?.rules) === JSON.stringify(chain.rules)) continue;
    batch.flushChain(chain.name);
    for (const rule of chain.rules) batch.addRule(chain.name, rule);
  }
  changeExcluded(before, after, had, batch);
  const stays = new Set(has.map(({ name }) => name));
  for (const name of had) if (!stays.has(name)) batch.deleteSet(name);
  changeElements(before, after, stays, elements);
}

/** The kernel takes an interval by its two ends, and checks each against all: they go and come together. */
function changeExcluded(before: PlanContext, after: PlanContext, had: ReadonlySet<string>, batch: NftBatch): void {
  const was = had.has(EXCLUDED);
  const same = JSON.stringify(before.excludedClients) === JSON.stringify(after.excludedClients);
  if (!tellsClients(after) || (was && same)) return;
  if (was) batch.flushSet(EXCLUDED);
  batch.addElements(EXCLUDED, excludedElements(after));
}

function changeElements(
  before: PlanContext,
  after: PlanContext,
  stays: ReadonlySet<string>,
  elements: ElementChanges,
): void {
  const old = frameElements(before);
  for (const [set, list] of frameElements(after)) {
    if (!stays.has(set)) continue;
    const was = new Set((old.get(set) ?? []).map(({ key }) => key));
    const is = new Set(list.map(({ key }) => key));
    for (const key of was) if (!is.has(key)) elements.delete(set, key);
    for (const key of is) if (!was.has(key)) elements.add(set, { key });
  }
}
