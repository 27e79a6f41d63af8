export { type Expression, expressionKinds, kindOf } from "./expressions/index.ts";
export { portUnreachable } from "./expressions/reject.ts";
export { addressHex, bytesOf, type Hex, hexOf, hostHex, hostNumber, padded, portHex } from "./hex.ts";
export type {
  BaseChain,
  Hook,
  NftChain,
  NftFamily,
  NftRule,
  NftSet,
  NftTable,
  SetElement,
  SetFlag,
} from "./model.ts";
export { type BatchObject, NftBatch } from "./netlink/batch.ts";
export { decodeChain, decodeElements, decodeRule, decodeSet, UnreadableNft } from "./netlink/decode.ts";
export * as nftNumbers from "./netlink/numbers.ts";
export { Attributes } from "./netlink/reader.ts";
export { AttributeWriter } from "./netlink/writer.ts";
export * as statements from "./statements.ts";
export { ruleText } from "./text/printer.ts";
export { tableLines, tableText } from "./text/table.ts";
export { type DataType, lengthOf, valueText } from "./types.ts";
export { type Verdict, verdictText } from "./verdict.ts";
export { CT_STATES, CT_STATUSES, PROTOCOLS } from "./words.ts";
