import { itemsOf } from "@fairlead/base";
import { decodeEndpointSlice, decodeNode, decodeService, decodeServiceCIDR } from "@fairlead/core";
import { KUBERNETES_MESSAGES } from "@fairlead/testkit/api-server";
import { expect, test } from "vitest";
import type { Message } from "../src/protobuf-kinds.ts";
import { resourceSpecs } from "../src/resources.ts";

/**
 * The authority on both sides is upstream's generated.proto: its fields, with their numbers, make an object with all
 * that a kind can have, and what the decoders read of it has to be in the tables.
 */

const tables = new Map(resourceSpecs({ nodeName: "node-a" }).map(({ kind, protobuf }) => [kind, protobuf]));

const DECODERS = {
  Service: decodeService,
  EndpointSlice: decodeEndpointSlice,
  Node: decodeNode,
  ServiceCIDR: decodeServiceCIDR,
} as const;

/** Values that decoders go on with; other fields have one of their type. */
const VALUES: Readonly<Record<string, unknown>> = {
  name: "web",
  namespace: "shop",
  clusterIP: "10.96.0.10",
  clusterIPs: ["10.96.0.10"],
  externalIPs: ["203.0.113.7"],
  addresses: ["10.144.1.5"],
  ip: "203.0.113.9",
  addressType: "IPv4",
  protocol: "TCP",
  type: "LoadBalancer",
  sessionAffinity: "ClientIP",
  loadBalancerSourceRanges: ["198.51.100.0/24"],
  labels: { "kubernetes.io/service-name": "web" },
  podCIDR: "10.144.1.0/24",
  podCIDRs: ["10.144.1.0/24"],
  cidrs: ["10.96.0.0/12"],
  ready: true,
};

function sampleOf(type: string, name: string): unknown {
  const fields = KUBERNETES_MESSAGES.get(type);
  if (fields === undefined) return VALUES[name] ?? (type === "bool" ? true : type.startsWith("int") ? 80 : "x");
  if (type === "Time") return "2026-01-31T12:00:00Z";
  const entries = Array.from(fields, ([field, { type: inner, isList, isMap }]) => {
    // Addresses of a Node are objects, those of an endpoint texts.
    const known = KUBERNETES_MESSAGES.has(inner) ? undefined : VALUES[field];
    const value = known ?? sampleOf(inner, field);
    if (isMap && known === undefined) return [field, { key: value }] as const;
    return [field, isList && !Array.isArray(value) ? [value] : value] as const;
  });
  return Object.fromEntries(entries);
}

/** The value, of which each field that is read is noted, by its path without places in lists. */
function noting(value: unknown, read: Set<string>, path = ""): unknown {
  if (typeof value !== "object" || value === null) return value;
  return new Proxy(value, {
    get(of, key) {
      const inner: unknown = Reflect.get(of, key);
      if (typeof key === "symbol" || !Object.hasOwn(of, key)) return inner;
      const at = Array.isArray(of) ? path : `${path}.${key}`;
      if (!(Array.isArray(of) && key === "length")) read.add(at);
      return noting(inner, read, at);
    },
  });
}

/** Paths of a table, with the names that upstream has for its numbers. */
function* pathsOf(message: Message, type: string, path = ""): Generator<string> {
  const upstream = KUBERNETES_MESSAGES.get(type) ?? new Map();
  const numbers = new Map(Array.from(upstream, ([name, field]) => [field.number, { name, ...field }] as const));
  for (const [number, field] of message.entries()) {
    if (field === undefined) continue;
    const known = numbers.get(number);
    yield `${path}.${known?.name}`;
    if (known?.name !== field.name) throw new Error(`${type}: ${number} is ${known?.name}, not ${field.name}`);
    if (Array.isArray(field.type) && field.many !== "map")
      yield* pathsOf(field.type, known.type, `${path}.${known.name}`);
  }
}

test.each(Object.entries(DECODERS))("what is read of a %s is in its protobuf table", (kind, decode) => {
  const read = new Set<string>();
  const { object } = decode(noting(sampleOf(kind, ""), read));
  expect(object).toBeDefined();
  const table = new Set(pathsOf(tables.get(kind) ?? [], kind));
  // Labels and annotations come whole.
  const missing = [...read].filter(
    (path) => path !== "" && !table.has(path) && !/\.(?:labels|annotations)\./.test(path),
  );
  expect(missing).toEqual([]);
  expect(itemsOf([...read]).length).toBeGreaterThan(3);
});
