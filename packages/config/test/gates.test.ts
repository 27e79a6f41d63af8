import { expect, test } from "vitest";
import { configOf, parse, warningsOf } from "./parse.ts";

const all = { externalIPs: true, nodeHints: true, watchList: true, statusz: true, flagz: true };
const noBeta = { ...all, watchList: false, statusz: false, flagz: false };

test.each([
  ["", all],
  ["AllowServiceExternalIPs=false", { ...all, externalIPs: false }],
  ["PreferSameTrafficDistribution=false", { ...all, nodeHints: false }],
  ["WatchListClient=false", { ...all, watchList: false }],
  ["ComponentStatusz=false,ComponentFlagz=false", { ...all, statusz: false, flagz: false }],
  ["AllBeta=false", noBeta],
  ["AllBeta=false,ComponentFlagz=true", { ...noBeta, flagz: true }],
  ["AllAlpha=true,AllBeta=true", all],
  ["KubeProxyIPVS=false", all],
])("--feature-gates=%s", (gates, features) => {
  const result = parse([`--feature-gates=${gates}`]);
  expect(configOf(result).features).toEqual(features);
  expect(warningsOf(result)).toEqual([]);
});

test("a gate that nobody knows takes nothing away, and is told", () => {
  const result = parse(["--feature-gates=NoSuchGate=false,NFTablesNetlink=false"]);
  expect(configOf(result).features).toEqual(all);
  expect(warningsOf(result)).toEqual(["--feature-gates: not known here, ignored: NoSuchGate"]);
});
