import type { AttributeWriter } from "../../netlink/writer.ts";
import type { NftFamily } from "../family.ts";
import { type NftSet, SET_FLAGS } from "../model.ts";
import { OBJECT_TYPES } from "../named-objects.ts";
import { lengthOf, typeId } from "../types.ts";
import * as numbers from "./numbers.ts";
import { setUserData } from "./user-data.ts";

/** What NFT_MSG_NEWSET says of a set behind its table and name: flags, types, limits and what nft remembers of it. */
export function writeSet(set: Omit<NftSet, "elements">, id: number, family: NftFamily, to: AttributeWriter): void {
  const flags = set.flags.reduce((bits, flag) => bits | SET_FLAGS[flag], set.data === undefined ? 0 : SET_FLAGS.map);
  const { objects } = set;
  to.u32(numbers.SET.flags, objects === undefined ? flags : flags | numbers.SET_OBJECT)
    .u32(numbers.SET.keyType, typeId(set.key))
    .u32(numbers.SET.keyLength, lengthOf(set.key));
  if (set.data === "verdict") to.u32(numbers.SET.dataType, numbers.VERDICT_TYPE);
  else if (set.data !== undefined)
    to.u32(numbers.SET.dataType, typeId(set.data)).u32(numbers.SET.dataLength, lengthOf(set.data));
  if (objects !== undefined) to.u32(numbers.SET.objectType, OBJECT_TYPES[objects]);
  to.u32(numbers.SET.id, id);
  if (set.timeout !== undefined) to.u64(numbers.SET.timeout, BigInt(set.timeout));
  const { size } = set;
  if (size !== undefined) to.nest(numbers.SET.description, (inner) => inner.u32(numbers.SET_DESCRIPTION.size, size));
  const userData = set.userData ?? setUserData(set, family);
  if (userData !== "") to.hex(numbers.SET.userData, userData);
}
