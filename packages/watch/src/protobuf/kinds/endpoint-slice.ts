import { field, list, message } from "../message.ts";
import { objectMeta } from "./metadata.ts";

const conditions = message({
  1: field("ready", "bool"),
  2: field("serving", "bool"),
  3: field("terminating", "bool"),
});

const named = message({ 1: field("name", "string") });

const endpoint = message({
  1: list("addresses", "string"),
  2: field("conditions", conditions),
  6: field("nodeName", "string"),
  8: field("hints", message({ 1: list("forZones", named), 2: list("forNodes", named) })),
});

const endpointPort = message({
  1: field("name", "string"),
  2: field("protocol", "string"),
  3: field("port", "int32"),
});

/** discovery.k8s.io/v1 EndpointSlice. */
export const endpointSlice = message({
  1: field("metadata", objectMeta),
  2: list("endpoints", endpoint),
  3: list("ports", endpointPort),
  4: field("addressType", "string"),
});
