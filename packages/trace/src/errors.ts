import { type Rule, renderRule, type Table } from "@fairlead/netfilter";
import { type NftRule, type NftTable, ruleText } from "@fairlead/netfilter/nft";
import type { TableName } from "./table-name.ts";

/** The packet reached a rule that the tracer can't decide, or the rule set is one that the kernel would refuse. */
export class TraceError extends Error {
  override readonly name = "TraceError";
  /** The table of the rule. */
  readonly table: TableName;
  /** The chain of the rule. */
  readonly chain: string;
  /** Place of the rule in its chain, from 0. */
  readonly index: number;
  /** The rule as its tools print it, `-A INPUT …` or `ct state new …`. */
  readonly rule: string;
  /** What of it can't be decided. */
  readonly problem: string;

  private constructor(
    { table, chain, index }: Omit<PlaceOf<TableName, unknown>, "rule">,
    rule: string,
    problem: string,
  ) {
    super(`${problem}: rule ${index + 1} of ${table} ${chain}: ${rule}`.trimEnd());
    this.table = table;
    this.chain = chain;
    this.index = index;
    this.rule = rule;
    this.problem = problem;
  }

  /** Of a rule of iptables. */
  static ofRule(place: PlaceOf<Table, Rule>, problem: string): TraceError {
    return new TraceError(place, `-A ${place.chain} ${renderRule(place.rule)}`.trimEnd(), problem);
  }

  /** Of a rule of nftables. */
  static ofNftRule({ chain, index, rule, table }: PlaceOf<NftTable, NftRule>, problem: string): TraceError {
    const name: TableName = `${table.family} ${table.name}`;
    return new TraceError({ table: name, chain, index }, ruleText(rule, table), problem);
  }
}

interface PlaceOf<In, Of> {
  readonly table: In;
  readonly chain: string;
  readonly index: number;
  readonly rule: Of;
}
