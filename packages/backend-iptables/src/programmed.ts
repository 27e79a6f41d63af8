import type { SyncReport } from "@fairlead/core";
import type { Written } from "./commit.ts";
import type { RenderContext } from "./plan/settings.ts";
import type { Totals } from "./plan/totals.ts";

/** What the kernel holds of ours after the last sync that was accepted, as far as changes need to know. */
export interface Programmed {
  readonly context: RenderContext;
  readonly totals: Totals;
}

export function report(kind: SyncReport["kind"], totals: Totals, written: Written): SyncReport {
  return {
    kind,
    objects: {
      filter: { total: totals.filter, written: written.get("filter") ?? 0 },
      nat: { total: totals.nat, written: written.get("nat") ?? 0 },
    },
  };
}
