import { describe, expect, test } from "vitest";
import { configOf, FILE, fixture, parse, warningsOf } from "./parse.ts";

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
      bindAddress: "0.0.0.0",
      healthzBindAddress: { address: "0.0.0.0", port: 10256 },
      metricsBindAddress: { address: "127.0.0.1", port: 10249 },
      bindAddressHardFail: false,
      enableProfiling: false,
      client: { kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf", qps: 5, burst: 10 },
      clusterCIDRs: ["10.144.0.0/16"],
      detectLocal: { kind: "cidrs", cidrs: ["10.144.0.0/16"] },
      nodePortAddresses: ["all"],
      iptables: {
        syncPeriodMs: 30_000,
        minSyncPeriodMs: 1_000,
        masqueradeAll: false,
        masqueradeBit: 14,
        localhostNodePorts: true,
      },
      ipvs: { minSyncPeriodMs: 0, scheduler: "rr", strictARP: false, excludeCIDRs: [], tcpTimeoutMs: 0 },
      conntrack: {
        maxPerCore: 32_768,
        min: 131_072,
        tcpEstablishedTimeoutMs: 86_400_000,
        tcpCloseWaitTimeoutMs: 3_600_000,
      },
      oomScoreAdj: -999,
      configSyncPeriodMs: 900_000,
      logging: { verbosity: 5, format: "text" },
      multiCNI: {
        excludeClusterCIDRs: ["10.244.0.0/16"],
        excludeCIDRsFrom: [],
        clusterCIDRsFrom: [],
        cidrChanges: { debounceMs: 1_000, removalDelayMs: 600_000, maxForeignPercent: 50 },
        mixedServices: "own-endpoints",
        excludedFrontends: "all",
        ownershipAnnotation: true,
        serviceRules: [],
      },
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
