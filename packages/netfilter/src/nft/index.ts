export { COUNTER } from "./expressions/actions.ts";
export { type Verdict, verdictText } from "./expressions/kind.ts";
export { ADDRESS_TYPES, CT_DIRECTIONS } from "./expressions/loads.ts";
export { type Expression, expressionKinds, kindOf } from "./expressions/table.ts";
export {
  type BaseChain,
  elementKey,
  type Hook,
  intervalElements,
  type NftChain,
  type NftFlowtable,
  type NftRule,
  type NftSet,
  type NftTable,
  type SetElement,
  type SetFlag,
} from "./model.ts";
export { type BatchObject, NftBatch } from "./netlink/batch.ts";
export {
  type DecodedBatch,
  decodeBatch,
  decodeChain,
  decodeElements,
  decodeForeignRule,
  decodeRule,
  decodeSet,
  isDormant,
  type NftChange,
  type NftRequest,
  tableCommentOf,
  UnreadableNft,
} from "./netlink/decode.ts";
export * as nftNumbers from "./netlink/numbers.ts";
export { decodeFlowtable } from "./netlink/objects.ts";
export * as statements from "./statements.ts";
export { ruleText, tableLines, tableText } from "./text/print.ts";
export { readTables } from "./text/read.ts";
export {
  addressHex,
  bytesOf,
  CT_STATES,
  CT_STATUSES,
  type DataType,
  FAMILY_NUMBERS,
  type Hex,
  hexOf,
  hostHex,
  hostNumber,
  IP_FAMILY,
  lengthOf,
  type NamedObject,
  NFT_FAMILY,
  type NftFamily,
  PROTOCOLS,
  padded,
  portHex,
  valueText,
} from "./types.ts";
