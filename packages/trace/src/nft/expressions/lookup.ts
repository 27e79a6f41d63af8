import { type Hex, lengthOf, type NftSet, type Verdict } from "@fairlead/netfilter/nft";
import { BREAK, type NftRuleContext, type Result } from "../rule-context.ts";
import { rememberedBy } from "../sets.ts";
import { followed } from "../verdict.ts";
import type { Evaluate, ExpressionOf } from "./kind.ts";

export const lookup: Evaluate<"lookup"> = (expression, place) => {
  const { walk, host, sets, registers } = place;
  const set = sets.get(expression.set);
  if (set === undefined) throw place.undecidable(`there is no set ${expression.set}`);
  const key = registers.read(expression.from, lengthOf(set.key));
  const found = sets.find(set, key, rememberedBy(walk.remembered, host.environment.remembered ?? []));
  if (found.kind === "open") return unknown(expression, set, place, `${found.problem}: ${registers.reason}`);
  if ((found.kind === "absent") !== (expression.inverted === true)) return BREAK;
  return found.kind === "found" ? take(expression, found.value, place) : undefined;
};

function take({ to }: ExpressionOf<"lookup">, value: Hex | Verdict | undefined, place: NftRuleContext): Result {
  if (to === undefined || value === undefined) return undefined;
  if (typeof value !== "string") return followed(value);
  if (to !== "verdict") place.registers.load(to, value);
  return undefined;
}

/** A rule may still match for an unknown value; after an unknown verdict the path is unknown. */
function unknown({ to }: ExpressionOf<"lookup">, { data }: NftSet, place: NftRuleContext, problem: string): Result {
  if (to === "verdict") throw place.undecidable(problem);
  if (to !== undefined && data !== undefined && data !== "verdict") {
    place.registers.loadUnknown(to, lengthOf(data), problem);
  }
  return { kind: "open", problem };
}
