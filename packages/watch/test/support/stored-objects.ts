/** Objects as an API server writes them in JSON: what Go's `omitempty` leaves out is not there. */

import { isObject } from "@fairlead/base";
import fc from "fast-check";
import type { Field, Message } from "../../src/protobuf-kinds.ts";

const word = fc.oneof(fc.stringMatching(/^[a-z][a-z0-9.-]{0,40}$/), fc.string({ unit: "binary", minLength: 1 }));
const anyText = fc.oneof(word, fc.constant(""));
const port = fc.oneof(fc.integer({ min: 1, max: 65_535 }), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }));
const nonZeroPort = port.filter((value) => value !== 0);
const items = <T>(item: fc.Arbitrary<T>) => fc.array(item, { minLength: 1, maxLength: 5 });
const texts = items(anyText);

const optional = <T extends object>(fields: { [name in keyof T]: fc.Arbitrary<T[name]> }) =>
  fc.record(fields, { requiredKeys: [] });

const labels = fc.dictionary(anyText, anyText, { minKeys: 1, maxKeys: 5, noNullPrototype: true });
const time = fc
  .date({ min: new Date("0001-01-01"), max: new Date("9999-12-31"), noInvalidDate: true })
  .map((date) => date.toISOString().replace(/\.\d+Z$/, "Z"));

const fields = {
  name: word,
  namespace: word,
  resourceVersion: word,
  creationTimestamp: time,
  deletionTimestamp: time,
  labels,
  annotations: labels,
};
const metadata = optional(fields);

const owner = fc.record({ apiVersion: anyText, kind: anyText, name: anyText });

const servicePort = fc.record(
  { name: word, protocol: word, port: fc.oneof(port, fc.constant(0)), nodePort: nonZeroPort },
  { requiredKeys: ["port"] },
);

const service = fc.record({
  metadata: optional({ ...fields, ownerReferences: items(owner) }),
  spec: optional({
    ports: items(servicePort),
    clusterIP: word,
    clusterIPs: texts,
    type: word,
    externalIPs: texts,
    sessionAffinity: word,
    loadBalancerSourceRanges: texts,
    externalTrafficPolicy: word,
    healthCheckNodePort: nonZeroPort,
    sessionAffinityConfig: optional({ clientIP: optional({ timeoutSeconds: fc.oneof(port, fc.constant(0)) }) }),
    internalTrafficPolicy: anyText,
    trafficDistribution: anyText,
  }),
  status: fc.record({ loadBalancer: optional({ ingress: items(optional({ ip: word, ipMode: anyText })) }) }),
});

const named = items(fc.record({ name: anyText }));

const endpoint = fc.record(
  {
    addresses: texts,
    conditions: optional({ ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() }),
    nodeName: anyText,
    hints: optional({ forZones: named, forNodes: named }),
  },
  { requiredKeys: ["addresses", "conditions"] },
);

const endpointSlice = fc.record(
  {
    metadata,
    addressType: anyText,
    endpoints: items(endpoint),
    ports: items(optional({ name: anyText, protocol: anyText, port: fc.oneof(port, fc.constant(0)) })),
  },
  { requiredKeys: ["metadata", "addressType"] },
);

const node = fc.record({
  metadata,
  spec: optional({ podCIDR: word, podCIDRs: texts, taints: items(fc.record({ key: anyText })) }),
  status: optional({ addresses: items(fc.record({ type: anyText, address: anyText })) }),
});

const serviceCIDR = fc.record({ metadata, spec: optional({ cidrs: texts }) });

export const stored = { Service: service, EndpointSlice: endpointSlice, Node: node, ServiceCIDR: serviceCIDR };

/** What of an object's JSON its protobuf is read to: the fields that the definition has. */
export function trimmed(raw: unknown, definition: Message): unknown {
  if (!isObject(raw)) return raw;
  const kept = definition.flatMap((field) => {
    const value = field && raw[field.name];
    return field === undefined || value === undefined || value === null ? [] : [[field.name, contentOf(value, field)]];
  });
  return Object.fromEntries(kept);
}

function contentOf(value: unknown, { type, many }: Field): unknown {
  if (typeof type === "string" || many === "map") return value;
  return Array.isArray(value) ? value.map((item) => trimmed(item, type)) : trimmed(value, type);
}
