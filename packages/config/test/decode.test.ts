/** Mistakes of indentation that Kubernetes' own parsers take without a word. */

import { fieldsOf, isObject } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { formatDuration, parseDuration } from "../src/index.ts";
import { fairleadSchema } from "../src/table/fairlead.ts";
import { kubeProxySchema } from "../src/table/kube-proxy.ts";
import { rowOf } from "../src/table/row.ts";
import { INVALID_VALUE, shareableConfiguration } from "../src/table/shareable.ts";
import { configOf, errorsOf, FILE, parse, parseFile, warningsOf } from "./parse.ts";

test("a lost indent: the field, its value and the block that it belongs under", () => {
  expect(warningsOf(parseFile('mode: "ipvs"', "ipvs:", "strictARP: true"))).toEqual([
    `${FILE}: strictARP: unknown field, ignored (belongs under ipvs, indented: ipvs.strictARP: true)`,
  ]);
});

test("several blocks have the field: the empty one before it, or each of them", () => {
  const hint = (...lines: readonly string[]) => warningsOf(parseFile(...lines)).join();
  expect(hint("iptables:", "masqueradeAll: true", "nftables:")).toContain("(belongs under iptables, indented: ");
  expect(hint("masqueradeAll: true")).toContain("(belongs under iptables or nftables)");
  expect(hint("ipvs: {masqueradeAll: true}")).toContain("ipvs.masqueradeAll: unknown field, ignored (belongs under ");
  expect(hint("logging: {splitStream: true}")).toContain(
    "(belongs under logging.options.text or logging.options.json)",
  );
});

test("a field of the other document, where it has the same path", () => {
  const belongs = (kind: string) => `unknown field, ignored (belongs in a ${kind}, another document of the file)`;
  expect(warningsOf(parseFile("multiCNI: {mixedServices: skip}", "ipvs: {fallback: false}"))).toEqual([
    `${FILE}: ipvs.fallback: ${belongs("FairleadConfiguration")}`,
    `${FILE}: multiCNI: ${belongs("FairleadConfiguration")}`,
  ]);
  const fairlead = "---\napiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nclusterCIDR: 10.0.0.0/8";
  expect(warningsOf(parseFile(fairlead))).toEqual([`${FILE}: clusterCIDR: ${belongs("KubeProxyConfiguration")}`]);
});

test("fields without a value are named too, where no block has them", () => {
  const lines = [
    "conntrack:",
    "maxPerCore: null",
    "min: null",
    "iptables:",
    "masqueradeBit:",
    "winkernel:",
    'sourceVip: ""',
  ];
  expect(warningsOf(parseFile(...lines))).toEqual([
    `${FILE}: maxPerCore: unknown field, ignored (belongs under conntrack, indented: conntrack.maxPerCore: null)`,
    `${FILE}: min: unknown field, ignored (belongs under conntrack, indented: conntrack.min: null)`,
    `${FILE}: masqueradeBit: unknown field, ignored (belongs under iptables, indented: iptables.masqueradeBit: null)`,
    `${FILE}: sourceVip: unknown field, ignored (belongs under winkernel, indented: winkernel.sourceVip: null)`,
  ]);
  expect(warningsOf(parseFile("nothing: null", "featureGates: {AllAlpha: null}"))).toEqual([
    `${FILE}: nothing: unknown field, ignored`,
  ]);
});

test.each([
  ["config.conf: 'kind: KubeProxyConfiguration'", 'is a whole ConfigMap; give the text of its data["config.conf"]'],
  ["kubeconfig.conf: 'kind: Config'", "is a ConfigMap without a configuration; give the text of the key that has one"],
])("a whole ConfigMap, data {%s}, is refused", (data, message) => {
  const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-proxy}\ndata: {${data}}`;
  expect(errorsOf(parse([`--config=${FILE}`], text))).toEqual([
    `${FILE}: kind ConfigMap: ${message}, as a volume has it as a file`,
  ]);
});

describe("durations as Go has them", () => {
  test.each([
    ["0", 0, "0s"],
    ["0s", 0, "0s"],
    ["1ns", 1e-6, "1ns"],
    ["1us", 1e-3, "1µs"],
    ["1.5µs", 1.5e-3, "1.5µs"],
    ["300ms", 300, "300ms"],
    ["1.5s", 1_500, "1.5s"],
    [".5s", 500, "500ms"],
    ["1.s", 1_000, "1s"],
    ["90s", 90_000, "1m30s"],
    ["15m", 900_000, "15m0s"],
    ["1h", 3_600_000, "1h0m0s"],
    ["2h22m", 8_520_000, "2h22m0s"],
    ["24h0m0s", 86_400_000, "24h0m0s"],
    ["1h15m30.918s", 4_530_918, "1h15m30.918s"],
    ["+5s", 5_000, "5s"],
    ["-1m", -60_000, "-1m0s"],
  ])("%s", (text, ms, written) => {
    expect(parseDuration(text)).toBeCloseTo(ms, 9);
    expect(formatDuration(ms)).toBe(written);
    expect(parseDuration(written)).toBeCloseTo(ms, 9);
  });

  test.each(["", "5", "s", "5 s", "1h 5m", "1d", "--1s", "1s-", "1e3s", "one", "-", ".s", "3000000h"])(
    "not %j",
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
});

const same = (text: string) => text;

/** Paths of all fields that hold values: blocks are walked. */
function* leavesOf(schema: z.core.$ZodType, path: readonly string[] = []): Generator<readonly string[]> {
  if (rowOf(schema)?.private !== undefined) return;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault) yield* leavesOf(schema.unwrap(), path);
  else if (schema instanceof z.ZodObject) {
    for (const [name, field] of Object.entries(schema.shape)) yield* leavesOf(field, [...path, name]);
  } else yield path;
}

const FIELDS = [
  ...Array.from(leavesOf(kubeProxySchema), (path) => ["KubeProxyConfiguration", path] as const),
  ...Array.from(leavesOf(fairleadSchema), (path) => ["FairleadConfiguration", path] as const),
];

test.each(FIELDS)("of a %s a wrong value of %j is not taken as unset", (kind, path) => {
  const wrong = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), { not: "this" });
  const kept = shareableConfiguration(kind, wrong, same);
  const found = path.reduce<unknown>((inner, name) => fieldsOf(inner)[name], kept);
  // A map takes an object.
  if (isObject(found)) expect(found).toEqual({ not: INVALID_VALUE });
  else expect(found).toBe(INVALID_VALUE);
});

test("what an agent serves of its configuration is kept whole", () => {
  const { kubeProxyConfiguration, fairleadConfiguration } = configOf(
    parse([
      "--cluster-cidr=10.144.0.0/16",
      "--kubeconfig=/etc/kubernetes/kube-proxy.conf",
      "--exclude-cluster-cidr=10.244.0.0/16",
    ]),
  );
  expect(shareableConfiguration("FairleadConfiguration", fairleadConfiguration, same)).toEqual(fairleadConfiguration);
  const { kubeconfig, ...client } = fieldsOf(kubeProxyConfiguration["clientConnection"]);
  expect(kubeconfig).toBe("/etc/kubernetes/kube-proxy.conf");
  expect(shareableConfiguration("KubeProxyConfiguration", kubeProxyConfiguration, same)).toEqual({
    ...kubeProxyConfiguration,
    clientConnection: client,
  });
});

test("unknown fields are left out, and texts are cleaned", () => {
  const given = { serviceProxyName: "edge", token: "x", multiCNI: { excludeClusterCIDRs: ["a", "b"], password: "x" } };
  expect(shareableConfiguration("FairleadConfiguration", given, (text) => `${text}!`)).toEqual({
    serviceProxyName: "edge!",
    multiCNI: { excludeClusterCIDRs: ["a!", "b!"] },
  });
  expect(shareableConfiguration("FairleadConfiguration", "x", same)).toBe(INVALID_VALUE);
});
