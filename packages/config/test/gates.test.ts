import { expect, test } from "vitest";
import { configOf, parse, warningsOf } from "./parse.ts";

const ALL = { externalIPs: true, nodeHints: true, watchList: true, statusz: true, flagz: true };
const noBeta = { ...ALL, watchList: false, statusz: false, flagz: false };

test.each([
  ["", ALL],
  ["AllowServiceExternalIPs=false", { ...ALL, externalIPs: false }],
  ["PreferSameTrafficDistribution=false", { ...ALL, nodeHints: false }],
  ["WatchListClient=false", { ...ALL, watchList: false }],
  ["ComponentStatusz=false,ComponentFlagz=false", { ...ALL, statusz: false, flagz: false }],
  ["AllBeta=false", noBeta],
  ["AllBeta=false,ComponentFlagz=true", { ...noBeta, flagz: true }],
  ["AllAlpha=true,AllBeta=true", ALL],
  ["KubeProxyIPVS=false", ALL],
])("--feature-gates=%s", (gates, features) => {
  const result = parse([`--feature-gates=${gates}`]);
  expect(configOf(result).features).toEqual(features);
  expect(warningsOf(result)).toEqual([]);
});

test("a gate that nobody knows takes nothing away, and is told", () => {
  const result = parse(["--feature-gates=NoSuchGate=false,NFTablesNetlink=false"]);
  expect(configOf(result).features).toEqual(ALL);
  expect(warningsOf(result)).toEqual(["--feature-gates: not known here, ignored: NoSuchGate"]);
});
