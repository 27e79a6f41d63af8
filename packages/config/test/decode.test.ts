import { expect, test } from "vitest";
import { errorsOf, FILE, parse, parseFile, warningsOf } from "./parse.ts";

/** Mistakes of indentation that Kubernetes' own parsers take without a word. */

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
