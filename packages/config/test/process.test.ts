import { describe, expect, test } from "vitest";
import { KNOWN } from "../src/resolve/gates.ts";
import { configOf, errorsOf, FILE, fixture, parse, parseFile, warningsOf } from "./parse.ts";

const settings = (...flags: string[]) => configOf(parse(flags)).serviceMetrics;

describe("metrics of services", () => {
  test("are none unless namespaces are named", () => {
    expect(settings()).toBeUndefined();
    expect(settings("--service-metrics=")).toBeUndefined();
    expect(settings("--service-metrics-max-series=5")).toBeUndefined();
  });

  test("of some namespaces, or of all", () => {
    expect(settings("--service-metrics=shop,kube-system,shop")).toEqual({
      namespaces: ["shop", "kube-system"],
      maxSeries: 2_000,
    });
    expect(settings("--service-metrics=shop,*", "--service-metrics-max-series=10000")).toEqual({
      namespaces: "all",
      maxSeries: 10_000,
    });
  });

  test("are fields of FairleadConfiguration as well", () => {
    const file = parseFile(
      "---\napiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration\nserviceMetrics: {namespaces: [shop], maxSeries: 7}",
    );
    expect(configOf(file).serviceMetrics).toEqual({ namespaces: ["shop"], maxSeries: 7 });
  });

  test.each([
    [["--service-metrics=shop,Web Shop"], "--service-metrics=Web Shop: must be the name of a namespace, or * for all"],
    [
      ["--service-metrics=*", "--service-metrics-max-series=10001"],
      "--service-metrics-max-series=10001: must be a whole number from 1 to 10000",
    ],
    [
      ["--service-metrics=*", "--proxy-mode=userspace", "--userspace-only"],
      '--service-metrics=["*"]: are read from connection tracking, which --userspace-only does not use',
    ],
  ])("%j is refused", (flags, error) => {
    expect(errorsOf(parse(flags))).toEqual([error]);
  });
});

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

/** What kube-proxy registers: name, stage, default (`pnpm kubernetes`). */
const registered = fixture("gates.tsv")
  .trimEnd()
  .split("\n")
  .map((line) => line.split("\t"));

test("gates that mean something here have kube-proxy's stage and default", () => {
  const theirs = new Map(registered.map(([name, stage, byDefault]) => [name, { stage, byDefault }]));
  for (const [name, { stage, byDefault }] of Object.entries(KNOWN)) {
    expect([name, { stage: stage.toUpperCase(), byDefault: String(byDefault) }]).toEqual([name, theirs.get(name)]);
  }
});

test("a gate that kube-proxy knows is never reported as unknown", () => {
  const result = parse([`--feature-gates=${registered.map(([gate]) => `${gate}=true`).join(",")}`]);
  expect(warningsOf(result)).toEqual([]);
  expect(registered.length).toBeGreaterThan(200);
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

/** The DaemonSet that operators run today, with its image changed and nothing else. */
describe("the founding case", () => {
  const argv = [`--config=${FILE}`, "--hostname-override=node-a", "--exclude-cluster-cidr=10.244.0.0/16", "--v=5"];
  const result = parse(argv, fixture("recorded/founding-case.in.yaml"));

  test("its file is taken as it stands", () => {
    expect(warningsOf(result)).toEqual([`${FILE}: ipvs.trictARP: unknown field, ignored (did you mean strictARP?)`]);
  });

  test("null, empty and zero are the defaults, but for the timeouts of ipvs", () => {
    expect(configOf(result)).toMatchObject({
      action: { kind: "run" },
      mode: "iptables",
      hostnameOverride: "node-a",
      healthzBindAddress: { address: "0.0.0.0", port: 10256 },
      metricsBindAddress: { address: "127.0.0.1", port: 10249 },
      client: { kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf", qps: 5, burst: 10 },
      detectLocal: { kind: "cidrs", cidrs: ["10.144.0.0/16"] },
      nodePortAddresses: ["all"],
      iptables: { syncPeriodMs: 30_000, minSyncPeriodMs: 1_000, masqueradeBit: 14, localhostNodePorts: true },
      ipvs: { minSyncPeriodMs: 0, scheduler: "rr", strictARP: false, excludeCIDRs: [], tcpTimeoutMs: 0 },
      conntrack: { maxPerCore: 32_768, min: 131_072, tcpEstablishedTimeoutMs: 86_400_000 },
      oomScoreAdj: -999,
      logging: { verbosity: 5, format: "text" },
      multiCNI: { excludeClusterCIDRs: ["10.244.0.0/16"], mixedServices: "own-endpoints", excludedFrontends: "all" },
      stateDir: "/run/fairlead",
    });
  });

  test("the filter's check can name where its CIDRs came from", () => {
    expect(configOf(result).provenance).toMatchObject({
      clusterCIDR: `${FILE}: clusterCIDR`,
      "multiCNI.excludeClusterCIDRs": "--exclude-cluster-cidr",
    });
  });

  test("the text is kept, to notice a change of the file", () => {
    expect(configOf(result).configFile).toEqual({ path: FILE, text: fixture("recorded/founding-case.in.yaml") });
  });
});
