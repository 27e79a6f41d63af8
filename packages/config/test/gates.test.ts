import { expect, test } from "vitest";
import { configOf, parse, warningsOf } from "./parse.ts";

const ALL = {
  externalIPs: true,
  nodeHints: true,
  watchList: true,
  statusz: true,
  flagz: true,
  nftLocalhostNodePorts: false,
};
const noBeta = { ...ALL, watchList: false, statusz: false, flagz: false };

test.each([
  ["", ALL],
  ["AllowServiceExternalIPs=false", { ...ALL, externalIPs: false }],
  ["PreferSameTrafficDistribution=false", { ...ALL, nodeHints: false }],
  ["WatchListClient=false", { ...ALL, watchList: false }],
  ["ComponentStatusz=false,ComponentFlagz=false", { ...ALL, statusz: false, flagz: false }],
  ["AllBeta=false", noBeta],
  ["AllBeta=false,ComponentFlagz=true", { ...noBeta, flagz: true }],
  ["AllAlpha=true,AllBeta=true", { ...ALL, nftLocalhostNodePorts: true }],
  ["KubeProxyNFTablesLocalhostNodePorts=true", { ...ALL, nftLocalhostNodePorts: true }],
  ["KubeProxyIPVS=false", ALL],
])("--feature-gates=%s", (gates, features) => {
  const result = parse([`--feature-gates=${gates}`]);
  expect(configOf(result).features).toEqual(features);
  expect(warningsOf(result)).toEqual([]);
});

test("an unknown gate takes nothing away, and is reported", () => {
  const result = parse(["--feature-gates=NoSuchGate=false,NFTablesNetlink=false"]);
  expect(configOf(result).features).toEqual(ALL);
  expect(warningsOf(result)).toEqual(["--feature-gates: unknown gates, ignored: NoSuchGate"]);
});

/** `kube-proxy v1.37.1 --help`, --feature-gates: those that mean nothing here, or nothing on Linux. */
const THEIRS = [
  "AtomicFIFO",
  "ClientsAllowCBOR",
  "ClientsPreferCBOR",
  "InOrderInformers",
  "InOrderInformersBatchProcess",
  "InformerResourceVersion",
  "NativeHistograms",
  "UnlockWhileProcessingFIFO",
  "WinDSR",
  "WinOverlay",
];

test("a gate that kube-proxy knows is never reported as unknown", () => {
  const result = parse([`--feature-gates=${THEIRS.map((gate) => `${gate}=true`).join(",")}`]);
  expect(warningsOf(result)).toEqual([]);
});

test.each([
  ["localhost", true],
  ["primary,localhost", true],
  ["127.0.0.1/32", true],
  ["::1/128", true],
  ["all", false],
  ["0.0.0.0/0", false],
  ["primary", false],
])("nftables mode with --nodeport-addresses=%s warns that the gate is off: %s", (addresses, warns) => {
  const flags = ["--proxy-mode=nftables", `--nodeport-addresses=${addresses}`];
  const expected = warns ? [expect.stringContaining("KubeProxyNFTablesLocalhostNodePorts=true")] : [];
  expect(warningsOf(parse(flags))).toEqual(expected);
  expect(warningsOf(parse([...flags, "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true"]))).toEqual([]);
  expect(warningsOf(parse(flags.slice(1)))).toEqual([]);
});
