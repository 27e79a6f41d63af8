import type { CompiledChain, CompiledRule } from "./compile.ts";
import { TraceError } from "./errors.ts";
import type { Host } from "./host.ts";
import type { Walk } from "./walk.ts";

/** A packet at a rule of iptables. */
export interface RuleContext {
  readonly walk: Walk;
  readonly host: Host;
  readonly chain: CompiledChain;
  readonly rule: CompiledRule;
}

/** The error of a rule that can't be decided. */
export function undecidable({ chain, rule }: RuleContext, problem: string): TraceError {
  const { table, name } = chain;
  return TraceError.ofRule({ table, chain: name, index: rule.index, rule: rule.rule }, problem);
}
