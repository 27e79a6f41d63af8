export { COUNTER } from "./expressions/counter.ts";
export { CT_DIRECTIONS } from "./expressions/ct.ts";
export { ADDRESS_TYPES } from "./expressions/fib.ts";
export { type Expression, expressionKinds, kindOf } from "./expressions/index.ts";
export { PORT_UNREACHABLE } from "./expressions/reject.ts";
export { type Verdict, verdictText } from "./expressions/verdict.ts";
export { FAMILY_NUMBERS, IP_FAMILY, NFT_FAMILY, type NftFamily } from "./family.ts";
export { addressHex, bytesOf, type Hex, hexOf, hostHex, hostNumber, padded, portHex } from "./hex.ts";
export { elementKey, intervalElements } from "./intervals.ts";
export { readTablesFromJson } from "./json/read.ts";
export type {
  BaseChain,
  Hook,
  NftChain,
  NftFlowtable,
  NftRule,
  NftSet,
  NftTable,
  SetElement,
  SetFlag,
} from "./model.ts";
export type { NamedObject } from "./named-objects.ts";
export { type BatchObject, NftBatch } from "./netlink/batch.ts";
export {
  decodeChain,
  decodeElements,
  decodeForeignRule,
  decodeRule,
  decodeSet,
  isDormant,
  tableCommentOf,
  UnreadableNft,
} from "./netlink/decode.ts";
export { type DecodedBatch, decodeBatch, type NftChange, type NftRequest } from "./netlink/decode-batch.ts";
export { decodeFlowtable } from "./netlink/flowtables.ts";
export * as nftNumbers from "./netlink/numbers.ts";
export * as statements from "./statements/index.ts";
export { ruleText } from "./text/printer.ts";
export { readTables } from "./text/read.ts";
export { tableLines, tableText } from "./text/table.ts";
export { type DataType, lengthOf, valueText } from "./types.ts";
export { CT_STATES, CT_STATUSES, PROTOCOLS } from "./words.ts";
