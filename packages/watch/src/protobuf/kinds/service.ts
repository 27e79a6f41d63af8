import { field, list, message, omitEmpty } from "../message.ts";
import { objectMeta } from "./metadata.ts";

const servicePort = message({
  1: omitEmpty("name", "string"),
  2: omitEmpty("protocol", "string"),
  3: field("port", "int32"),
  5: omitEmpty("nodePort", "int32"),
});

const affinityConfig = message({ 1: field("clientIP", message({ 1: field("timeoutSeconds", "int32") })) });

const serviceSpec = message({
  1: list("ports", servicePort),
  3: omitEmpty("clusterIP", "string"),
  4: omitEmpty("type", "string"),
  5: list("externalIPs", "string"),
  7: omitEmpty("sessionAffinity", "string"),
  9: list("loadBalancerSourceRanges", "string"),
  11: omitEmpty("externalTrafficPolicy", "string"),
  12: omitEmpty("healthCheckNodePort", "int32"),
  14: field("sessionAffinityConfig", affinityConfig),
  18: list("clusterIPs", "string"),
  22: field("internalTrafficPolicy", "string"),
  23: field("trafficDistribution", "string"),
});

const ingress = message({ 1: omitEmpty("ip", "string"), 3: field("ipMode", "string") });

const loadBalancer = message({ 1: list("ingress", ingress) });

/** core/v1 Service. */
export const service = message({
  1: field("metadata", objectMeta),
  2: field("spec", serviceSpec),
  3: field("status", message({ 1: field("loadBalancer", loadBalancer) })),
});
