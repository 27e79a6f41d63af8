import type { SyncReport } from "@fairlead/core";
import type { ChainRule } from "./plan/chains.ts";
import { CHAINS, TABLES } from "./plan/chains.ts";
import type { RenderContext } from "./plan/context.ts";
import type { Relays } from "./relay/relays.ts";

/** What the kernel has taken. */
export interface Programmed {
  readonly context: RenderContext;
  readonly relays: Relays;
  /** By group. */
  readonly rules: Map<string, readonly ChainRule[]>;
}

/** Rules that one sync wrote, by table. */
export type Written = Readonly<Record<"filter" | "nat", number>>;

export const NOTHING: Written = { filter: 0, nat: 0 };

/** How many rules each chain of this mode holds, by `table chain`. */
export function chainSizes({ rules }: Programmed): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>();
  for (const table of TABLES) for (const chain of CHAINS[table]) sizes.set(`${table} ${chain}`, 0);
  for (const group of rules.values()) {
    for (const { table, chain } of group) {
      const key = `${table} ${chain}`;
      sizes.set(key, (sizes.get(key) ?? 0) + 1);
    }
  }
  return sizes;
}

export function report(kind: SyncReport["kind"], programmed: Programmed, written: Written): SyncReport {
  const totals = { filter: 0, nat: 0 };
  for (const group of programmed.rules.values()) for (const { table } of group) totals[table] += 1;
  return {
    kind,
    objects: {
      filter: { total: totals.filter, written: written.filter },
      nat: { total: totals.nat, written: written.nat },
    },
  };
}
