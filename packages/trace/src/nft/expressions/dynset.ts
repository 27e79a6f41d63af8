import { lengthOf } from "@fairlead/netfilter/nft";
import type { Remembered } from "../../remembered.ts";
import { isKnown } from "../registers.ts";
import type { Evaluate } from "./kind.ts";

/** A set that is full, where adding would end the rule, is not told from one that is not. */
export const dynset: Evaluate<"dynset"> = ({ set: name, operation, from, value }, place) => {
  const { walk, sets, registers } = place;
  const set = sets.get(name);
  if (set === undefined) throw place.undecidable(`there is no set ${name}`);
  const key = registers.read(from, lengthOf(set.key));
  const data =
    value === undefined || set.data === undefined || set.data === "verdict"
      ? undefined
      : registers.read(value, lengthOf(set.data));
  if (!isKnown(key) || (data !== undefined && !isKnown(data))) throw place.undecidable(registers.reason);
  const item: Remembered = {
    table: sets.name,
    set: name,
    key,
    ...(data !== undefined && { value: data }),
    ...(operation === "delete" && { deleted: true as const }),
  };
  walk.remembered = { item, before: walk.remembered };
  return undefined;
};
