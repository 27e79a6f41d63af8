import { type Rule, renderRule, type Table } from "@fairlead/netfilter";

/** The packet reached a rule that the tracer can't decide, or the rule set is one that the kernel would refuse. */
export class TraceError extends Error {
  override readonly name = "TraceError";
  readonly table: Table;
  readonly chain: string;
  /** Place of the rule in its chain, from 0. */
  readonly index: number;
  readonly rule: Rule;
  /** What of it can't be decided. */
  readonly problem: string;

  constructor(table: Table, chain: string, index: number, rule: Rule, problem: string) {
    super(`${problem}: rule ${index + 1} of ${table} ${chain}: -A ${chain} ${renderRule(rule)}`.trimEnd());
    this.table = table;
    this.chain = chain;
    this.index = index;
    this.rule = rule;
    this.problem = problem;
  }
}
