import { toEnd } from "@fairlead/base";
import { compareNftables, type Finding } from "@fairlead/inspect";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { Side } from "./sides.ts";

/** What differs in one table of nftables. */
export interface TableDifference extends Pick<Finding, "kind" | "where" | "what"> {
  /** `ip kube-proxy` */
  readonly table: string;
}

/** How tables of nftables differ in chains, rules, sets and elements. A plan says nothing of tables that it has not. */
export function differentTables(before: Side, after: Side): readonly TableDifference[] {
  const [old, now] = [byName(before), byName(after)];
  const names = new Set([...old.keys(), ...now.keys()]);
  return [...names].flatMap((table) => {
    const [was, is] = [old.get(table), now.get(table)];
    if ((was === undefined && before.planned) || (is === undefined && after.planned)) return [];
    const only = was === undefined ? ({ kind: "extra", where: "the table", what: table } as const) : undefined;
    const found = was === undefined ? [] : toEnd(compareNftables(was, is));
    return (only === undefined ? found : [only]).map(({ kind, where, what }) => ({ table, kind, where, what }));
  });
}

function byName({ state }: Side): ReadonlyMap<string, NftTable> {
  return new Map((state.nftables ?? []).map((table) => [`${table.family} ${table.name}`, table]));
}
