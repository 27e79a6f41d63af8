import type { Verdict } from "@fairlead/netfilter/nft";
import type { Result } from "./rule-context.ts";

/** What a verdict makes of the rule. */
export function followed(verdict: Verdict): Result {
  switch (verdict.kind) {
    case "jump":
    case "goto":
      return { kind: "call", chain: verdict.chain, goto: verdict.kind === "goto" };
    case "continue":
      return undefined;
    default:
      return { kind: verdict.kind };
  }
}
