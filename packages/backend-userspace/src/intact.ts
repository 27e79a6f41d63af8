import { ruleKey } from "@fairlead/netfilter";
import { jumps } from "./plan/jumps.ts";
import type { RulesPort } from "./port.ts";
import { chainSizes, type Programmed } from "./programmed.ts";

/** Whether the jumps to our chains are there, and in every chain as many rules as were written; the first difference ends it. */
export async function looksIntact(port: RulesPort, programmed: Programmed): Promise<boolean> {
  for (const { table, chain, first, last } of jumps(programmed.context)) {
    const present = new Set(((await port.list(table, chain)) ?? []).map(ruleKey));
    if (![...first, ...last].every((rule) => present.has(ruleKey(rule)))) return false;
  }
  for (const [key, size] of chainSizes(programmed)) {
    const [table, chain = ""] = key.split(" ");
    const rules = await port.list(table === "nat" ? "nat" : "filter", chain);
    if (rules?.length !== size) return false;
  }
  return true;
}
