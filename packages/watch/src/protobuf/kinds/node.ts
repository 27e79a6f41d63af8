import { field, list, message, omitEmpty } from "../message.ts";
import { objectMeta } from "./metadata.ts";

const nodeSpec = message({
  1: omitEmpty("podCIDR", "string"),
  5: list("taints", message({ 1: field("key", "string") })),
  7: list("podCIDRs", "string"),
});

const address = message({ 1: field("type", "string"), 2: field("address", "string") });

/** core/v1 Node. */
export const node = message({
  1: field("metadata", objectMeta),
  2: field("spec", nodeSpec),
  3: field("status", message({ 5: list("addresses", address) })),
});
