import type { ForwardingPlan } from "@fairlead/core";
import { type Rule, ruleKey, type Table } from "@fairlead/netfilter";
import type { Look } from "./lookout.ts";
import { nodePortJumps } from "./plan/frame.ts";
import { JUMPS } from "./plan/jumps.ts";
import { CANARY, FORWARD, POSTROUTING, SERVICES } from "./plan/names.ts";
import { reachesEndpoints, refusal } from "./plan/reach.ts";
import { type IptablesSettings, type RenderContext, renderContext } from "./plan/settings.ts";
import type { IptablesPort } from "./port.ts";

/** What must be there is asked of single chains: the canaries, the jumps to our chains, rules in KUBE-SERVICES. */
export interface Watched {
  readonly table: Extract<Table, "nat" | "filter" | "mangle">;
  readonly looks: readonly Look[];
}

type FilledChains = Readonly<Record<"nat" | "filter", string>>;

/** Small tables first: mangle holds a canary alone, and goes with the others when somebody flushes everything. */
export function watchedTables(
  port: IptablesPort,
  plan: ForwardingPlan,
  settings: IptablesSettings,
): readonly Watched[] {
  // Asked for by a look alone: it goes through all groups, and most checks come to no look.
  let filled: FilledChains | undefined;
  const filledChain = (table: keyof FilledChains) => {
    filled ??= filledChains(plan, renderContext(settings, plan, new Set()));
    return filled[table];
  };
  const canary = (table: Table) => async () => (await port.list(table, CANARY)) !== undefined;
  const watched = (table: "nat" | "filter"): Watched => ({
    table,
    looks: [() => isFilled(port, table, filledChain(table)), canary(table), ...jumpLooks(port, table)],
  });
  return [{ table: "mangle", looks: [canary("mangle")] }, watched("filter"), watched("nat")];
}

function jumpLooks(port: IptablesPort, table: "nat" | "filter"): readonly Look[] {
  return JUMPS.filter((jumps) => jumps.table === table).map(
    ({ chain, rules }) =>
      async () =>
        containsAll((await port.list(table, chain)) ?? [], rules),
  );
}

async function isFilled(port: IptablesPort, table: Table, chain: string): Promise<boolean> {
  return ((await port.list(table, chain, 1)) ?? []).length > 0;
}

/**
 * A chain of each table that cannot be empty: KUBE-SERVICES where the plan has something for it. Filter's holds refusals
 * alone, nat's is empty on a node without node ports and services.
 */
function filledChains(plan: ForwardingPlan, context: RenderContext): FilledChains {
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
