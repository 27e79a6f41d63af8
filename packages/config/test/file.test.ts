import { describe, expect, test } from "vitest";
import { configFile, configOf, FILE, parse, parseFile, warningsOf } from "./parse.ts";

describe("values", () => {
  test("YAML 1.1's words, as Kubernetes reads them", () => {
    const config = configOf(
      parseFile("enableProfiling: yes", "bindAddressHardFail: on", "iptables: {masqueradeBit: 0x0e}"),
    );
    expect(config).toMatchObject({ enableProfiling: true, bindAddressHardFail: true, iptables: { masqueradeBit: 14 } });
  });

  test("JSON is YAML", () => {
    const file = { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration", mode: "nftables" };
    expect(configOf(parse([`--config=${FILE}`], JSON.stringify(file)))).toMatchObject({
      mode: "nftables",
      nodePortAddresses: ["primary"],
    });
  });

  test("blocks that are null or missing", () => {
    expect(parseFile("conntrack: null", "ipvs:", "clientConnection: {}", "winkernel: ~")).toMatchObject({
      kind: "run",
      warnings: [],
    });
  });

  test("zeros that are values", () => {
    const config = configOf(
      parseFile(
        "oomScoreAdj: 0",
        "iptables: {masqueradeBit: 0}",
        "conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}",
      ),
    );
    expect(config).toMatchObject({
      oomScoreAdj: 0,
      iptables: { masqueradeBit: 0 },
      conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeoutMs: 0, tcpCloseWaitTimeoutMs: 0 },
    });
  });

  test("zeros that are the default", () => {
    const nftables = configOf(parseFile("mode: nftables", "nftables: {syncPeriod: 0s, minSyncPeriod: 0s}"));
    expect(nftables.nftables).toMatchObject({ syncPeriodMs: 30_000, minSyncPeriodMs: 1_000 });
    expect(configOf(parseFile("mode: ipvs", "ipvs: {syncPeriod: 0s}")).ipvs.syncPeriodMs).toBe(30_000);
  });

  test("addresses follow the family of bindAddress, ports are appended", () => {
    expect(configOf(parseFile("bindAddress: '::'"))).toMatchObject({
      healthzBindAddress: { address: "::", port: 10256 },
      metricsBindAddress: { address: "::1", port: 10249 },
    });
    const bare = configOf(parseFile("healthzBindAddress: 10.0.0.1", "metricsBindAddress: 'FD00:0::1'"));
    expect(bare).toMatchObject({
      healthzBindAddress: { address: "10.0.0.1", port: 10256 },
      metricsBindAddress: { address: "fd00::1", port: 10249 },
    });
  });

  test.each([
    ["detectLocalMode: NodeCIDR", { kind: "node-cidr" }],
    ["detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cni0}", { kind: "bridge", interface: "cni0" }],
    [
      "detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: veth}",
      { kind: "interface-prefix", prefix: "veth" },
    ],
    ["detectLocalMode: ClusterCIDR", { kind: "none" }],
    [
      "clusterCIDR: 10.144.0.0/16, 10.145.0.0/16,FD00:144::/48",
      { kind: "cidrs", cidrs: ["10.144.0.0/16", "10.145.0.0/16", "fd00:144::/48"] },
    ],
  ])("%s", (lines, detectLocal) => {
    expect(configOf(parseFile(lines)).detectLocal).toEqual(detectLocal);
  });

  test.each([
    ["10000-20000", { from: 10_000, to: 20_000 }],
    ["10000+100", { from: 10_000, to: 10_100 }],
    ["4500", { from: 4_500, to: 4_500 }],
    ["0-0", undefined],
  ])("portRange %s", (portRange, wanted) => {
    expect(configOf(parseFile("mode: userspace", `portRange: "${portRange}"`)).portRange).toEqual(wanted);
  });

  test("blocks of modes that are not in use may be wrong", () => {
    const lines = ["ipvs: {scheduler: magic, excludeCIDRs: [none], tcpTimeout: -1s}", "nftables: {masqueradeBit: 99}"];
    expect(configOf(parseFile(...lines, "portRange: none")).ipvs.excludeCIDRs).toEqual([]);
  });

  test("the log's frequency may be a number of nanoseconds", () => {
    expect(configOf(parseFile("logging: {flushFrequency: 2000000000}")).logging.flushFrequencyMs).toBe(2_000);
  });
});

describe("what is taken with a warning", () => {
  test.each([
    ["clusterCIDR: 10.1.2.3/16", "clusterCIDR: 10.1.2.3/16 has host bits set; using 10.1.0.0/16"],
    ["clusterCIDR: 10.1.0.0/16,10.1.0.0/16", "clusterCIDR: 10.1.0.0/16 is listed twice"],
    [
      "nodePortAddresses: [192.168.1.5/24]",
      "nodePortAddresses: 192.168.1.5/24 has host bits set; using 192.168.1.0/24",
    ],
    ["featureGates: {Nonsense: true, AllAlpha: false}", "featureGates: unknown gates, ignored: Nonsense"],
    ["Mode: ipvs", "Mode: unknown field, ignored (did you mean mode?)"],
    ["iptables: {masqueradeBits: 3}", "iptables.masqueradeBits: unknown field, ignored (did you mean masqueradeBit?)"],
    ["foo: {bar: {baz: 1}}", "foo: unknown field, ignored"],
    ["__proto__: {mode: ipvs}", "__proto__: unknown field, ignored"],
    ["mode: ipvs\nmode: iptables", "line 4: a key is defined twice; the last one takes effect"],
  ])("%s", (lines, warning) => {
    const result = parseFile(lines);
    expect(configOf(result).mode).toBe("iptables");
    expect(warningsOf(result)).toEqual([`${FILE}: ${warning}`]);
  });

  test("fields of Windows", () => {
    expect(warningsOf(parseFile("winkernel: {enableDSR: true}", "windowsRunAsService: true"))).toEqual([
      "winkernel and windowsRunAsService only work on Windows; ignored",
    ]);
  });
});

describe("documents", () => {
  const fairlead = "apiVersion: fairlead.dev/v1alpha1\nkind: FairleadConfiguration";

  test("a FairleadConfiguration on either side, empty ones between", () => {
    const multiCNI = "multiCNI: {excludeClusterCIDRs: [10.244.0.0/16], excludedFrontends: cluster-ip}";
    for (const documents of [
      [configFile(), `${fairlead}\n${multiCNI}`],
      [`${fairlead}\n${multiCNI}`, "", "# nothing", configFile()],
    ]) {
      const result = parse([`--config=${FILE}`], documents.join("\n---\n"));
      expect(configOf(result).multiCNI).toEqual({
        excludeClusterCIDRs: ["10.244.0.0/16"],
        excludeCIDRsFrom: [],
        clusterCIDRsFrom: [],
        cidrChanges: { debounceMs: 1_000, removalDelayMs: 600_000, maxForeignPercent: 50 },
        mixedServices: "own-endpoints",
        excludedFrontends: "cluster-ip",
        ownershipAnnotation: true,
        protectedServices: [],
        serviceRules: [],
      });
      expect(configOf(result).provenance["multiCNI.excludeClusterCIDRs"]).toBe(`${FILE}: multiCNI.excludeClusterCIDRs`);
    }
  });

  test("sources of CIDRs, by name and with settings", () => {
    const multiCNI = `multiCNI:
  excludeCIDRsFrom:
    - nodes
    - {source: kube-ovn-subnets, vpcs: [ovn-cluster, blue], within: [10.16.0.0/12]}
    - {source: custom, resource: spiderippools.v2beta1.spiderpool.spidernet.io, fields: [spec.subnet]}
    - {source: flannel, namespace: kube-system, name: canal-config}
  clusterCIDRsFrom: [{source: calico-ippools}]
  cidrChanges: {debounce: 2s, removalDelay: 1h, maxForeignPercent: 0}`;
    const result = parse([`--config=${FILE}`], [configFile(), `${fairlead}\n${multiCNI}`].join("\n---\n"));
    expect(warningsOf(result)).toEqual([
      expect.stringContaining("multiCNI.excludedFrontends: is not set, so services of other networks are left to them"),
      expect.stringContaining("multiCNI.cidrChanges.maxForeignPercent: raises an alarm only"),
    ]);
    expect(configOf(result).multiCNI).toMatchObject({
      excludeCIDRsFrom: [
        { source: "nodes" },
        { source: "kube-ovn-subnets", vpcs: ["ovn-cluster", "blue"], within: ["10.16.0.0/12"] },
        { source: "custom", resource: "spiderippools.v2beta1.spiderpool.spidernet.io", fields: ["spec.subnet"] },
        { source: "flannel", namespace: "kube-system", name: "canal-config" },
      ],
      clusterCIDRsFrom: [{ source: "calico-ippools" }],
      cidrChanges: { debounceMs: 2_000, removalDelayMs: 3_600_000, maxForeignPercent: 0 },
    });
  });

  test("rules for services", () => {
    const rules = `multiCNI:
  serviceRules:
    - {annotation: ovn.kubernetes.io/vpc, notIn: [blue, {defaultVPC: true}], ownership: foreign}
    - {namespaceLabel: team, in: [net, ""], ownership: ours}
    - {namespaceLabel: tenant, ownership: foreign, excludedFrontends: excluded-clients}`;
    const result = parse([`--config=${FILE}`], [configFile(), `${fairlead}\n${rules}`].join("\n---\n"));
    expect(warningsOf(result)).toEqual([]);
    expect(configOf(result).multiCNI.serviceRules).toEqual([
      { annotation: "ovn.kubernetes.io/vpc", notIn: ["blue"], notInDefaultVPC: true, ownership: "foreign" },
      { namespaceLabel: "team", in: ["net", ""], ownership: "ours" },
      { namespaceLabel: "tenant", ownership: "foreign", excludedFrontends: "excluded-clients" },
    ]);
  });

  test("sources as flags, which win over the file", () => {
    const text = [configFile(), `${fairlead}\nmultiCNI: {excludeCIDRsFrom: [nodes]}`].join("\n---\n");
    const flags = ["--exclude-cidrs-from=flannel,cilium-nodes", "--cluster-cidr-from=calico-ippools"];
    const { multiCNI } = configOf(parse([`--config=${FILE}`, ...flags, "--cidr-removal-delay=0s"], text));
    expect(multiCNI.excludeCIDRsFrom).toEqual([{ source: "flannel" }, { source: "cilium-nodes" }]);
    expect(multiCNI.clusterCIDRsFrom).toEqual([{ source: "calico-ippools" }]);
    expect(multiCNI.cidrChanges.removalDelayMs).toBe(0);
  });

  test("an empty one of them is the default", () => {
    expect(parse([`--config=${FILE}`], `${configFile()}\n---\n${fairlead}\nmultiCNI: null`).kind).toBe("run");
  });
});

test("the configuration is served as kube-proxy does", () => {
  const lines = [
    "mode: ipvs",
    "ipvs: {strictARP: true, excludeCIDRs: [10.1.0.0/16]}",
    "featureGates: {AllAlpha: false}",
  ];
  expect(configOf(parseFile(...lines)).kubeProxyConfiguration).toMatchObject({
    kind: "KubeProxyConfiguration",
    featureGates: { AllAlpha: false },
    ipvs: { strictARP: true, excludeCIDRs: ["10.1.0.0/16"], syncPeriod: "30s", minSyncPeriod: "0s" },
    iptables: { syncPeriod: "0s" },
  });
});
