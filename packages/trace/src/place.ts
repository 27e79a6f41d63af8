import type { CompiledChain, CompiledRule } from "./compile.ts";
import { TraceError } from "./errors.ts";
import type { Host } from "./host.ts";
import type { Walk } from "./walk.ts";

/** A packet at a rule. */
export interface Place {
  readonly walk: Walk;
  readonly host: Host;
  readonly chain: CompiledChain;
  readonly rule: CompiledRule;
}

/** The error of a rule that can't be decided. */
export function undecidable({ chain, rule }: Place, problem: string): TraceError {
  return new TraceError(chain.table, chain.name, rule.index, rule.rule, problem);
}
