export * from "./connection.ts";
export * from "./marks.ts";
export {
  addressIn,
  addressTypeIs,
  destinationPortIs,
  type Field,
  interfaceIs,
  load,
  loadKey,
  lookUp,
  pastTheFirst,
  protocolIs,
} from "./packet.ts";
export * from "./verdicts.ts";
