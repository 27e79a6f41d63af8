import { field, list, message } from "../message.ts";
import { objectMeta } from "./metadata.ts";

/** networking.k8s.io/v1 ServiceCIDR. */
export const serviceCIDR = message({
  1: field("metadata", objectMeta),
  2: field("spec", message({ 1: list("cidrs", "string") })),
});
