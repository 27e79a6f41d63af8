import { type ForwardingPlan, inSlices } from "@fairlead/core";
import { payloadText, renderRule, restoreLines } from "@fairlead/netfilter";
import type { Extent } from "./lookout.ts";
import type { Settled } from "./options.ts";
import type { ChainRules } from "./plan/chain-rules.ts";
import { fillChains } from "./plan/commands.ts";
import { constantChains, dispatchTexts, lastRules, type ServiceTable, sharedChains } from "./plan/fixed.ts";
import { CANARY, SERVICES } from "./plan/names.ts";
import { reachesEndpoints, refusal } from "./plan/reach.ts";
import type { RenderContext } from "./plan/settings.ts";
import type { RulesPort } from "./port.ts";
import { SameTexts } from "./same-texts.ts";

/** What a table is held against. */
export interface Wanted {
  readonly plan: ForwardingPlan;
  readonly context: RenderContext;
}

/** mangle holds a canary only, which goes with the others when somebody flushes everything. */
export async function hasCanary(port: RulesPort): Promise<boolean> {
  return (await port.texts("mangle", [{ chain: CANARY }])).has(CANARY);
}

/**
 * Looks with one process whether the chains of fixed names hold what they must: the canary, the jumps to our chains,
 * the rules that do not depend on services; of the chains that all services share a first rule, or all of them where
 * `extent` says so.
 * Chains of the second sort that somebody has emptied or edited are written again at once: that takes no full sync.
 *
 * @returns false: only a full sync brings back what is missing
 */
export async function holdsFixed(
  port: RulesPort,
  table: ServiceTable,
  { plan, context }: Wanted,
  extent: Extent,
  settled: Settled,
): Promise<boolean> {
  const same = new SameTexts(port.family);
  const [constant, shared] = [constantChains(table, context), sharedChains(table, context)];
  const dispatch = extent === "all" ? await inSlices(dispatchTexts(table, plan, context), settled.breathe) : undefined;
  const first = dispatch === undefined && isFilled(table, plan, context) ? [{ chain: SERVICES, number: 1 }] : [];
  const whole = new Set([CANARY, ...[...constant, ...shared].map(({ chain }) => chain), ...(dispatch?.keys() ?? [])]);
  const found = await port.texts(table, [...[...whole].map((chain) => ({ chain })), ...first]);
  const isThere = ({ chain }: { readonly chain: string }) => found.has(chain);
  if (![{ chain: CANARY }, ...first, ...constant].every(isThere)) return false;
  if (!shared.every(({ chain, rules }) => same.contains(found.get(chain) ?? [], [...rules]))) return false;
  for (const [chain, texts] of dispatch ?? []) {
    if (!same.inAnyOrder(found.get(chain) ?? [""], texts)) return false;
  }
  if (dispatch !== undefined && table === "nat" && !endsRight(found.get(SERVICES) ?? [], context, same)) return false;
  const changed = constant.filter(({ chain, rules }) => !same.inOrder(found.get(chain) ?? [], [...rules]));
  if (changed.length > 0) await writeAgain(port, table, changed, settled);
  return true;
}

/** What no service address took may be for a node port: behind those rules none would be asked. */
function endsRight(found: readonly string[], context: RenderContext, same: SameTexts): boolean {
  const last = lastRules(context);
  return same.inAnyOrder(found.slice(found.length - last.length), last.map(renderRule));
}

async function writeAgain(
  port: RulesPort,
  table: ServiceTable,
  chains: readonly ChainRules[],
  { breathe, onProblem }: Settled,
): Promise<void> {
  const names = chains.map(({ chain }) => chain).join(", ");
  await port.restore(payloadText(restoreLines([{ table, commands: fillChains(chains) }]), breathe));
  onProblem(`somebody changed ${names} in the ${table} table of ${port.family}; written again`);
}

/**
 * Whether KUBE-SERVICES has a rule: filter's holds refusals only, nat's is empty on a node without node ports and
 * services.
 */
function isFilled(table: ServiceTable, { groups }: ForwardingPlan, context: RenderContext): boolean {
  if (table === "nat" && lastRules(context).length > 0) return true;
  for (const { frontends } of groups.values()) {
    for (const frontend of frontends) {
      const here =
        table === "nat"
          ? frontend.kind !== "node-port" && reachesEndpoints(frontend)
          : frontend.kind === "cluster-ip" && refusal(frontend) !== undefined;
      if (here) return true;
    }
  }
  return false;
}
