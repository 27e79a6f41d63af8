import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { objectAt, valueAt } from "@fairlead/base";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse, parseDocument, stringify } from "yaml";
import {
  createManifestsSnapshot,
  createManifestsSource,
  type ObjectChange,
  type OtherSubscription,
} from "../src/index.ts";
import { documentsOf, MAX_PIECE } from "../src/manifests/parse.ts";
import { isKindOf, setDefaults } from "../src/manifests/read.ts";
import { Consumer, endAfterEach, type Kept, later, temporaryFolder } from "./support/fake-api.ts";

endAfterEach();

const read = (text: string, line = 0) => documentsOf({ text, line });

test("what another library writes is read as it was meant", () => {
  const style = fc.constantFrom({}, { indentSeq: false }, { lineWidth: 20 }, { collectionStyle: "flow" as const });
  fc.assert(
    fc.property(fc.jsonValue(), style, (value, options) => {
      const meant = JSON.parse(JSON.stringify({ value }));
      // A key of YAML 1.2, which that library writes; to us, as to kubectl, it is a merge.
      fc.pre(!hasKey(meant, "<<"));
      expect(read(stringify(meant, options))).toEqual([meant]);
    }),
  );
});

function hasKey(value: unknown, key: string): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, below]) => name === key || hasKey(below, key));
}

const PLAIN = ["~", "null", "Null", "yes", "on", "True", "0777", "0o17", "0x1F", "0b1", "1_000", "1:30", "2026-11-23"];
const MORE = ["1e3", ".5", "5.", "+5", "-0", "-.inf", ".NaN", "1.0", "10.96.0.10", "fd00::1", "=", "!!str 5"];

test.each([...PLAIN, ...MORE])("%s is what it is to another library", (scalar) => {
  for (const text of [`a: ${scalar}\n`, `- ${scalar}\n`, `{a: ${scalar}}\n`]) expect(read(text)).toEqual([parse(text)]);
});

test("numbers and words of every spelling are what they are to another library", () => {
  const spelling = fc.string({ unit: fc.constantFrom(..."0123456789+-._eExoabfFinNuUlLtTrRsSyY~"), minLength: 1 });
  fc.assert(
    fc.property(spelling, (scalar) => {
      const text = `a: ${scalar}\n`;
      fc.pre(isMapOfText(text));
      expect(read(text)).toEqual([parse(text)]);
    }),
  );
});

/** Not one of YAML's own signs, such as `-` by itself. */
function isMapOfText(text: string): boolean {
  return parseDocument(text).errors.length === 0 && !/^a: -(?: |$)/m.test(text);
}

test("a map that merges itself is merged with nothing", () => {
  expect(read("a: &a {<<: *a, b: 1}\n")).toEqual([{ a: { b: 1 } }]);
});

test.each([
  ["a key twice", "a: 1\na: 2\n", 2, "duplicated mapping key"],
  ["an unknown tag", "a: 1\nb: !x 1\n", 2, "unknown scalar tag"],
  ["an alias of nothing", "a: 1\nb: *x\n", 2, "unidentified alias"],
  ["a key that is a list", "? [b]\n: 1\n", 1, "complex keys"],
  ["a quote without an end", 'a: 1\nb: "\n', 3, "indentation"],
])("%s is a mistake in its line", (_what, text, line, message) => {
  expect(() => read(text, 7)).toThrow(message);
  expect(() => read(text, 7)).toThrow(expect.objectContaining({ name: "ManifestSyntaxError", line: line + 7 }));
});

const filled = (text: string) => text.repeat(Math.floor((MAX_PIECE - 100) / text.length));

/** As long as a piece may be; other parsers take minutes, or hundreds of megabytes, for some of them. */
describe("texts that are made to take long are read, or refused, like others", () => {
  test.each([
    ["tags", `a: ${filled("!a ")}`, /tag/],
    ["brackets", filled("["), /nested deeper than 100 levels/],
    ["empty maps", `a: [${filled("{},")}]`, undefined],
    ["anchors", filled("- &a x\n"), undefined],
    ["aliases", `a: &a x\nb:\n${filled("- *a\n")}`, /alias/],
    ["an open quote", `"${filled("a\n")}`, /unexpected end/],
    ["dashes", filled("- "), /nested deeper than 100 levels/],
    ["merges of merges", `a: &a {b: 1}\nc: {<<: [${filled("*a, ").slice(0, 4_000)}*a]}\n`, /merge|alias/],
    ["comments", filled("#\n"), undefined],
  ])("%s", (_what, text, error) => {
    if (error === undefined) expect(read(text).length).toBeLessThanOrEqual(1);
    else expect(() => read(text)).toThrow(error);
  });
});

/** As an operator describes it: its kind is not known. */
const RESOURCE = { group: "example.org", version: "v1", plural: "podranges", kind: "podranges", namespaced: false };
const definition = (kind: string, more: object = {}) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "podranges.example.org" },
  spec: { group: "example.org", scope: "Cluster", names: { plural: "podranges", kind }, ...more },
});
const object = (kind: string, name: string, namespace?: string) => ({
  apiVersion: "example.org/v1",
  kind,
  metadata: { name, namespace },
});

function consumer() {
  const one = new Consumer();
  const other: OtherSubscription = {
    decode: one.subscription.decode,
    onChange: (change) => one.subscription.onChange(change as ObjectChange<Kept>),
    resource: RESOURCE,
    onState: () => {},
  };
  return { one, other };
}

async function keysOf(...objects: readonly object[]): Promise<readonly string[]> {
  const { one, other } = consumer();
  const readStandardInput = async () => Buffer.from(JSON.stringify(objects));
  const source = createManifestsSnapshot({ paths: ["-"], nodeName: "node-a", readStandardInput });
  await source.run({ others: [other] }, new AbortController().signal);
  return one.keys();
}

const named = object("CIDRSet", "defined");
const guessed = object("PodRange", "guessed");

test.each<[string, readonly object[], readonly string[]]>([
  ["without a definition the kind is guessed", [named, guessed], ["/guessed"]],
  ["a definition's kind is the only one", [named, guessed, definition("CIDRSet")], ["/defined"]],
  ["wherever it stands", [definition("CIDRSet"), named, guessed], ["/defined"]],
  ["of two the last one counts", [definition("CIDRSet"), named, definition("PodRange"), guessed], ["/guessed"]],
  ["of another group it says nothing", [definition("CIDRSet", { group: "other.org" }), named, guessed], ["/guessed"]],
  ["without names it says nothing", [definition("CIDRSet", { names: null }), named, guessed], ["/guessed"]],
  [
    "objects in namespaces keep theirs",
    [definition("CIDRSet", { scope: "Namespaced" }), object("CIDRSet", "one", "a"), object("CIDRSet", "one", "b")],
    ["a/one", "b/one"],
  ],
])("%s", async (_what, objects, keys) => {
  expect(await keysOf(...objects)).toEqual(keys);
});

test("a text that has the word and is no definition is read as ever", async () => {
  expect(await keysOf(object("PodRange", "of-CustomResourceDefinition"))).toEqual(["/of-CustomResourceDefinition"]);
});

test("in a folder that is followed a definition may come, change and go", async () => {
  const folder = await temporaryFolder();
  const write = (name: string, ...objects: readonly object[]) =>
    writeFile(join(folder, name), objects.map((one) => JSON.stringify(one)).join("\n---\n"));
  await write("objects.yaml", named, guessed);
  const { one, other } = consumer();
  const stop = new AbortController();
  const ended = createManifestsSource({ path: folder, nodeName: "node-a" }).run({ others: [other] }, stop.signal);
  later(async () => {
    stop.abort();
    await ended;
  });
  const keys = () => one.keys().join();
  await one.until(() => one.synced > 0);
  expect(keys()).toBe("/guessed");
  await write("definition.yaml", definition("CIDRSet"));
  await one.until(() => keys() === "/defined");
  await write("definition.yaml", definition("PodRange"));
  await one.until(() => keys() === "/guessed");
  await write("definition.yaml", definition("CIDRSet"));
  await one.until(() => keys() === "/defined");
  await rm(join(folder, "definition.yaml"));
  await one.until(() => keys() === "/guessed");
});

test("two objects of one resource are two subscriptions", async () => {
  const both = ["one", "other"].map((name) => {
    const { one, other } = consumer();
    const only = { namespace: "kube-system", name };
    return { one, other: { ...other, resource: { ...RESOURCE, kind: "PodRange", namespaced: true, only } } };
  });
  const objects = ["one", "other", "third"].map((name) => object("PodRange", name, "kube-system"));
  const readStandardInput = async () => Buffer.from(JSON.stringify(objects));
  const source = createManifestsSnapshot({ paths: ["-"], nodeName: "node-a", readStandardInput });
  await source.run({ others: both.map(({ other }) => other) }, new AbortController().signal);
  expect(both.map(({ one }) => one.keys())).toEqual([["kube-system/one"], ["kube-system/other"]]);
});

test("a resource that is subscribed twice is an error: only one of them would hear of it", async () => {
  const { other } = consumer();
  const source = createManifestsSnapshot({
    paths: ["-"],
    nodeName: "node-a",
    readStandardInput: async () => Buffer.of(),
  });
  await expect(source.run({ others: [other, other] }, new AbortController().signal)).rejects.toThrow(
    / is subscribed twice; use one subscription for both$/,
  );
});

function defaulted(kind: string, raw: Record<string, unknown>): Record<string, unknown> {
  setDefaults(kind, raw);
  return raw;
}

const defaultedSpec = (spec: Record<string, unknown>) => objectAt(defaulted("Service", { spec }), "spec");

test("a Service as short as it can be written", () => {
  expect(
    defaulted("Service", { metadata: { name: "a" }, spec: { clusterIP: "10.96.0.9", ports: [{ port: 80 }] } }),
  ).toEqual({
    metadata: { name: "a", namespace: "default" },
    spec: {
      type: "ClusterIP",
      clusterIP: "10.96.0.9",
      clusterIPs: ["10.96.0.9"],
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      internalTrafficPolicy: "Cluster",
      sessionAffinity: "None",
      ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
    },
  });
});

test("what is written stays as it is", () => {
  const spec = {
    type: "LoadBalancer",
    clusterIP: "fd00:10:96::9",
    clusterIPs: ["fd00:10:96::9", "10.96.0.9"],
    ipFamilies: ["IPv6", "IPv4"],
    ipFamilyPolicy: "PreferDualStack",
    internalTrafficPolicy: "Local",
    externalTrafficPolicy: "Local",
    allocateLoadBalancerNodePorts: false,
    sessionAffinity: "ClientIP",
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } },
    ports: [{ name: "dns", port: 53, protocol: "UDP", targetPort: "dns" }],
  };
  const status = { loadBalancer: { ingress: [{ ip: "192.0.2.7", ipMode: "Proxy" }, { hostname: "lb.example" }] } };
  const raw = { metadata: { name: "a", namespace: "b" }, spec, status };
  expect(defaulted("Service", structuredClone(raw))).toEqual(raw);
});

test("addresses: either way of writing them gives both, and the families", () => {
  const spec = { clusterIPs: ["10.96.0.9", "fd00:10:96::9"] };
  expect(defaultedSpec(spec)).toMatchObject({
    clusterIP: "10.96.0.9",
    clusterIPs: ["10.96.0.9", "fd00:10:96::9"],
    ipFamilies: ["IPv4", "IPv6"],
    ipFamilyPolicy: "RequireDualStack",
  });
  expect(defaultedSpec({ clusterIP: "None" })).not.toHaveProperty("ipFamilies");
});

test.each([
  [{ type: "NodePort" }, "Cluster"],
  [{ type: "LoadBalancer" }, "Cluster"],
  [{ externalIPs: ["192.0.2.1"] }, "Cluster"],
  [{ externalIPs: [] }, undefined],
  [{}, undefined],
])("externalTrafficPolicy of %j: %s", (spec, policy) => {
  expect(defaultedSpec({ ...spec })).toHaveProperty("internalTrafficPolicy", "Cluster");
  expect(valueAt(defaultedSpec({ ...spec }), "externalTrafficPolicy")).toBe(policy);
});

test("an ExternalName has no policies", () => {
  const spec = defaultedSpec({ type: "ExternalName", externalName: "example" });
  expect(spec).toEqual({ type: "ExternalName", externalName: "example", sessionAffinity: "None" });
});

test("ClientIP affinity lasts three hours; an ingress address is a VIP; nulls are absent", () => {
  const status = { loadBalancer: { ingress: [{ ip: "192.0.2.7" }, { hostname: "h" }] } };
  const spec = {
    type: null,
    sessionAffinity: "ClientIP",
    sessionAffinityConfig: null,
    ports: [{ port: 1, targetPort: 0 }],
  };
  expect(defaulted("Service", { metadata: { name: "a", namespace: "" }, spec, status })).toMatchObject({
    metadata: { namespace: "default" },
    spec: {
      type: "ClusterIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
      ports: [{ port: 1, protocol: "TCP", targetPort: 1 }],
    },
    status: { loadBalancer: { ingress: [{ ip: "192.0.2.7", ipMode: "VIP" }, { hostname: "h" }] } },
  });
});

test("EndpointSlice ports get a name and a protocol; conditions stay unknown", () => {
  const endpoints = [{ addresses: ["10.144.0.1"] }, { addresses: ["10.144.0.2"], conditions: { ready: null } }];
  expect(
    defaulted("EndpointSlice", { metadata: {}, endpoints, ports: [{ port: 1 }, { name: "x", protocol: "SCTP" }] }),
  ).toEqual({
    metadata: { namespace: "default" },
    endpoints,
    ports: [
      { name: "", protocol: "TCP", port: 1 },
      { name: "x", protocol: "SCTP" },
    ],
  });
});

test("Node: one of podCIDR and podCIDRs gives the other; it has no namespace", () => {
  expect(defaulted("Node", { metadata: { name: "n" }, spec: { podCIDR: "10.144.0.0/24" } })).toEqual({
    metadata: { name: "n" },
    spec: { podCIDR: "10.144.0.0/24", podCIDRs: ["10.144.0.0/24"] },
  });
});

test.each([
  ["text", { spec: "x", status: 1 }],
  ["lists", { metadata: [], spec: [], status: { loadBalancer: { ingress: {} } } }],
  ["odd items", { spec: { ports: [null, 1, "x", []], clusterIPs: [1, null], externalIPs: "x" } }],
])("%s in place of objects: unchanged", (_what, raw) => {
  for (const kind of ["Service", "EndpointSlice", "Node", "ServiceCIDR"]) {
    expect(() => setDefaults(kind, structuredClone(raw))).not.toThrow();
  }
});

test.each([
  ["SpiderIPPool", "spiderippools", true],
  ["NetworkPolicy", "networkpolicies", true],
  ["Address", "addresses", true],
  ["Endpoints", "endpoints", true],
  ["Pool", "ippools", false],
  ["IPPool", "subnets", false],
])("%s is a kind of %s: %s", (kind, plural, expected) => {
  expect(isKindOf(kind, plural)).toBe(expected);
});
