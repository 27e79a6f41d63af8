import type { ForwardingPlan } from "@fairlead/core";
import { type Rule, ruleKey, type Table } from "@fairlead/netfilter";
import { nodePortJumps } from "./plan/frame.ts";
import { JUMPS } from "./plan/jumps.ts";
import { CANARY, FORWARD, POSTROUTING, SERVICES } from "./plan/names.ts";
import { reachesEndpoints, refusal } from "./plan/reach.ts";
import { type IptablesSettings, type RenderContext, renderContext } from "./plan/settings.ts";
import type { IptablesPort } from "./port.ts";

/**
 * Whether the canary chains, the jumps to our chains and rules in KUBE-SERVICES are there, in nat and filter. Asks for
 * single chains, and stops at the first that is missing.
 */
export async function looksIntact(
  port: IptablesPort,
  plan: ForwardingPlan,
  settings: IptablesSettings,
): Promise<boolean> {
  const context = renderContext(settings, plan, new Set());
  const filled = filledChains(plan, context);
  for (const table of ["nat", "filter"] as const) {
    if ((await port.list(table, CANARY)) === undefined) return false;
    if (!(await isFilled(port, table, filled[table]))) return false;
  }
  for (const { table, chain, rules } of JUMPS) {
    if (!containsAll((await port.list(table, chain)) ?? [], rules)) return false;
  }
  return true;
}

async function isFilled(port: IptablesPort, table: Table, chain: string): Promise<boolean> {
  return ((await port.list(table, chain, 1)) ?? []).length > 0;
}

/**
 * A chain of each table that cannot be empty: KUBE-SERVICES where the plan has something for it. Filter's holds refusals
 * alone, nat's is empty on a node without node ports and services.
 */
function filledChains(plan: ForwardingPlan, context: RenderContext): Readonly<Record<"nat" | "filter", string>> {
  const wanted = { nat: nodePortJumps(context).length > 0, filter: false };
  for (const { frontends } of plan.groups.values()) {
    for (const frontend of frontends) {
      wanted.nat ||= frontend.kind !== "node-port" && reachesEndpoints(frontend);
      wanted.filter ||= frontend.kind === "cluster-ip" && refusal(frontend) !== undefined;
    }
    if (wanted.nat && wanted.filter) break;
  }
  return { nat: wanted.nat ? SERVICES : POSTROUTING, filter: wanted.filter ? SERVICES : FORWARD };
}

function containsAll(existing: readonly Rule[], wanted: readonly Rule[]): boolean {
  const texts = new Set(existing.map(ruleKey));
  return wanted.every((rule) => texts.has(ruleKey(rule)));
}
