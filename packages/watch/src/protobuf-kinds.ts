/**
 * The messages of k8s.io/api and k8s.io/apimachinery as tables: which fields are read, by number, type and JSON name.
 */

/** One field of a message as the object's JSON has it. */
export interface Field {
  readonly name: string;
  readonly type: "string" | "int32" | "bool" | "bytes" | "time" | Message;
  readonly many: "list" | "map" | undefined;
  /** Go's `omitempty` on what is no pointer: JSON leaves it out where it is empty, protobuf writes it. */
  readonly omitEmpty: boolean;
}

/**
 * The fields of a message that are read, each at its number (the `generated.proto` alongside the Go type has them); all
 * others are passed over.
 */
export type Message = readonly (Field | undefined)[];

/** runtime.TypeMeta. */
export const typeMeta = message({ 1: omitEmpty("apiVersion", "string"), 2: omitEmpty("kind", "string") });

/** runtime.Unknown: what an object is, and its bytes. */
export const unknown = message({
  1: field("typeMeta", typeMeta),
  2: field("raw", "bytes"),
  3: omitEmpty("contentEncoding", "string"),
});

/** meta/v1 WatchEvent, with its runtime.RawExtension. */
export const watchEvent = message({
  1: field("type", "string"),
  2: field("object", message({ 1: field("raw", "bytes") })),
});

/** meta/v1 ListMeta. */
export const listMeta = message({
  2: omitEmpty("resourceVersion", "string"),
  3: omitEmpty("continue", "string"),
});

/** meta/v1 Status. */
export const status = message({
  3: omitEmpty("message", "string"),
  4: omitEmpty("reason", "string"),
  5: field("details", message({ 4: list("causes", message({ 1: omitEmpty("reason", "string") })) })),
  6: omitEmpty("code", "int32"),
});

const entry = message({ 1: field("key", "string"), 2: field("value", "string") });

const metadata = {
  1: omitEmpty("name", "string"),
  3: omitEmpty("namespace", "string"),
  6: omitEmpty("resourceVersion", "string"),
  8: field("creationTimestamp", "time"),
  9: field("deletionTimestamp", "time"),
  11: map("labels"),
  12: map("annotations"),
};

/** meta/v1 ObjectMeta. */
const objectMeta = message(metadata);

/** meta/v1 OwnerReference. */
const owner = message({ 1: field("kind", "string"), 3: field("name", "string"), 5: field("apiVersion", "string") });

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
  8: omitEmpty("loadBalancerIP", "string"),
  9: list("loadBalancerSourceRanges", "string"),
  11: omitEmpty("externalTrafficPolicy", "string"),
  12: omitEmpty("healthCheckNodePort", "int32"),
  14: field("sessionAffinityConfig", affinityConfig),
  18: list("clusterIPs", "string"),
  19: list("ipFamilies", "string"),
  22: field("internalTrafficPolicy", "string"),
  23: field("trafficDistribution", "string"),
});

const ingress = message({
  1: omitEmpty("ip", "string"),
  2: omitEmpty("hostname", "string"),
  3: field("ipMode", "string"),
});

const loadBalancer = message({ 1: list("ingress", ingress) });

/** core/v1 Service. */
export const service = message({
  1: field("metadata", message({ ...metadata, 13: list("ownerReferences", owner) })),
  2: field("spec", serviceSpec),
  3: field("status", message({ 1: field("loadBalancer", loadBalancer) })),
});

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

/** networking.k8s.io/v1 ServiceCIDR. */
export const serviceCIDR = message({
  1: field("metadata", objectMeta),
  2: field("spec", message({ 1: list("cidrs", "string") })),
});

function message(fields: Readonly<Record<number, Field>>): Message {
  const numbers = Object.keys(fields).map(Number);
  return Array.from({ length: Math.max(...numbers) + 1 }, (_, number) => fields[number]);
}

/** JSON has it whenever protobuf has it: a pointer in Go, or always there. */
function field(name: string, type: Field["type"]): Field {
  return { name, type, many: undefined, omitEmpty: false };
}

function omitEmpty(name: string, type: "string" | "int32" | "bool"): Field {
  return { name, type, many: undefined, omitEmpty: true };
}

function list(name: string, type: "string" | Message): Field {
  return { name, type, many: "list", omitEmpty: false };
}

/** From text to text. */
function map(name: string): Field {
  return { name, type: entry, many: "map", omitEmpty: false };
}
