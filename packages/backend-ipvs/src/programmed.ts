import type { SyncReport } from "@fairlead/core";
import { countRules } from "./frame-commands.ts";
import type { PlanContext } from "./plan/context.ts";
import { type FrameFacts, TABLES } from "./plan/frame-facts.ts";
import type { Ledger } from "./plan/ledger.ts";
import { SET_KEYS } from "./plan/sets.ts";
import type { Written } from "./work.ts";

/** What the kernel holds of ours after the last sync that was accepted, as far as changes need to know. */
export interface Programmed {
  readonly context: PlanContext;
  readonly facts: FrameFacts;
  readonly ledger: Ledger;
}

export function report(kind: SyncReport["kind"], { ledger, facts }: Programmed, written: Written): SyncReport {
  const rules = TABLES.map((table) => {
    const total = countRules(facts, table);
    return [table, { total, written: written.rules ? total : 0 }] as const;
  });
  const members = SET_KEYS.reduce((sum, set) => sum + ledger.members(set).size, 0);
  return {
    kind,
    objects: {
      ...Object.fromEntries(rules),
      virtualServers: { total: ledger.servers.size, written: written.servers },
      addresses: { total: ledger.addresses.size, written: written.addresses },
      setMembers: { total: members, written: written.members },
    },
    ...(written.refused.length > 0 && { refused: written.refused.map(({ text }) => text) }),
  };
}
