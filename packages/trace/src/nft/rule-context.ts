import type { NftRule } from "@fairlead/netfilter/nft";
import type { TraceError } from "../errors.ts";
import type { Host } from "../host.ts";
import type { RuleVerdict } from "../rule-verdict.ts";
import type { Walk } from "../walk.ts";
import type { Registers } from "./registers.ts";
import type { NftSets } from "./sets.ts";

/** A packet within a rule of nftables. */
export interface NftRuleContext {
  readonly walk: Walk;
  readonly host: Host;
  readonly rule: NftRule;
  readonly sets: NftSets;
  readonly registers: Registers;
  /** Takes both ways where the rule can't be decided. */
  readonly assuming: boolean;
  /** What this way takes for granted of the rule. */
  readonly assumed: Assumed | undefined;
  /** The error of a rule that can't be decided. */
  readonly undecidable: (problem: string) => TraceError;
}

export interface Assumed {
  readonly matched: boolean;
  readonly problem: string;
}

/** What an expression makes of the rule; undefined: it goes on. */
export type Result = End | undefined;

type End =
  /** The packet goes on at the next rule. */
  | { readonly kind: "break" }
  /** Goes on with any of the numbers from 0 to before `modulus` in the register, each as probable. */
  | { readonly kind: "draw"; readonly modulus: number; readonly to: number }
  /** Whether the rule goes on can't be told. */
  | { readonly kind: "open"; readonly problem: string }
  | Exclude<RuleVerdict, { readonly kind: "next" }>;

export const BREAK: End = { kind: "break" };
