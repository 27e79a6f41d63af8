import { lengthOf, type NftSet } from "@fairlead/netfilter/nft";
import type { Remembered } from "../../remembered.ts";
import { isKnown } from "../registers.ts";
import { BREAK, type NftRuleContext } from "../rule-context.ts";
import { rememberedBy } from "../sets.ts";
import type { Evaluate, ExpressionOf } from "./kind.ts";

/** A map keeps the value that it has, and a set that is full ends the rule (nft_dynset_eval). */
export const dynset: Evaluate<"dynset"> = (expression, place) => {
  const { walk, host, sets, registers } = place;
  const { set: name, operation, from } = expression;
  const set = sets.get(name);
  if (set === undefined) throw place.undecidable(`there is no set ${name}`);
  const key = registers.read(from, lengthOf(set.key));
  const value = mappedValue(expression, set, place);
  if (!isKnown(key) || (value !== undefined && !isKnown(value))) throw place.undecidable(registers.reason);
  const about = { table: sets.name, set: name, key };
  if (operation === "delete") {
    walk.remembered = { item: { ...about, deleted: true }, before: walk.remembered };
    return undefined;
  }
  const found = sets.find(set, key, rememberedBy(walk.remembered, host.environment.remembered ?? []));
  if (found.kind !== "found" && isFull(set)) return BREAK;
  const kept = found.kind === "found" ? found.value : value;
  const timeout = expression.timeout ?? set.timeout;
  const item: Remembered = {
    ...about,
    ...(kept !== undefined && { value: kept }),
    ...(timeout !== undefined && { timeout }),
  };
  walk.remembered = { item, before: walk.remembered };
  return undefined;
};

function mappedValue(
  { value }: ExpressionOf<"dynset">,
  { data }: NftSet,
  { registers }: NftRuleContext,
): string | undefined {
  return value === undefined || data === undefined || data === "verdict"
    ? undefined
    : registers.read(value, lengthOf(data));
}

/** What packets of the same trace have put there does not count. */
function isFull({ size, elements }: NftSet): boolean {
  return size !== undefined && elements.size >= size;
}
