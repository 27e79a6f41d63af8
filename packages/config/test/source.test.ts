import { describe, expect, test } from "vitest";
import { configFile, configOf, errorsOf, FILE, parse, parseFile, warningsOf } from "./parse.ts";

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

const CIDR = "must be a CIDR, such as 10.144.0.0/16 or fd00:144::/48";
const DURATION = "must be a duration with units, such as 30s, 1m30s or 1h0m0s";

/** Lines of a file, and what its error says. What flags.test.ts has of the same rows is not here again. */
const WRONG = `
mode: [ipvs] => mode: ["ipvs"]: must be text
oomScoreAdj: '5' => oomScoreAdj: 5: must be a whole number from -1000 to 1000
enableProfiling: 1 => enableProfiling: 1: must be true or false
iptables: {syncPeriod: 30} => iptables.syncPeriod: 30: must be text
iptables: {syncPeriod: 30sec} => iptables.syncPeriod: 30sec: ${DURATION}
iptables: {syncPeriod: 5s, minSyncPeriod: 10s} => iptables.minSyncPeriod: 10s: must not be longer than ${FILE}: iptables.syncPeriod, which is 5s
iptables: {syncPeriod: 500ms} => iptables.syncPeriod: 500ms: must not be shorter than ${FILE}: iptables.minSyncPeriod, which is 1s
conntrack: none => conntrack: none: must be a block of fields
clientConnection: {qps: '5'} => clientConnection.qps: 5: must be a number, such as 5 or 0.5
clusterCIDR: [10.144.0.0/16] => clusterCIDR: ["10.144.0.0/16"]: must be text: CIDRs separated by commas
clusterCIDR: 10.144.0.0 => clusterCIDR[0]: 10.144.0.0: ${CIDR}
nodePortAddresses: 10.0.0.0/8 => nodePortAddresses: 10.0.0.0/8: must be a list of CIDRs and the words primary, localhost, all
nodePortAddresses: [all, 5] => nodePortAddresses[1]: 5: must be text
featureGates: {AllAlpha: 'true'} => featureGates.AllAlpha: true: must be true or false
featureGates: [AllAlpha] => featureGates: ["AllAlpha"]: must be a map of names to true or false
mode: nftables | nftables: {masqueradeBit: 32} => nftables.masqueradeBit: 32: must be a whole number from 0 to 31
mode: userspace | portRange: 1-70000 => portRange: 1-70000: must be ports from 1 to 65535, such as 10000-20000 or 10000+100; empty for any
logging: {vmodule: [{filePattern: 'a=b'}]} => logging.vmodule[0].filePattern: a=b: must be a file name or pattern without = and ,
detectLocalMode: InterfaceNamePrefix => detectLocalMode: InterfaceNamePrefix: InterfaceNamePrefix needs ${FILE}: detectLocal.interfaceNamePrefix
`;

const rowsOf = (table: string) =>
  table
    .trim()
    .split("\n")
    .map((row) => row.split(" => "));

describe("fields of a file", () => {
  test.each(rowsOf(WRONG))("%s", (lines = "", error) => {
    expect(errorsOf(parseFile(...lines.split(" | ")))).toEqual([`${FILE}: ${error}`]);
  });

  test("an unknown field and wrong values, all at once", () => {
    const result = parseFile("trictARP: true", "oomScoreAdj: x", "clusterCIDR: x", "nodePortAddresses: [x]");
    expect(errorsOf(result)).toHaveLength(3);
    expect(warningsOf(result)).toEqual([`${FILE}: trictARP: unknown field, ignored`]);
  });
});

describe("files that are no configuration", () => {
  const kinds =
    "a document's kind must be KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1) or FairleadConfiguration (fairlead.dev/v1alpha1)";
  test.each([
    ["", ": has no document of kind KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1)"],
    ["just text", ": a document must be a block of fields (kind: KubeProxyConfiguration …), and one is text"],
    ["- a", ": a document must be a block of fields (kind: KubeProxyConfiguration …), and one is a list"],
    ["mode: ipvs", `: kind: ${kinds}`],
    ["kind: Service", `: kind Service: ${kinds}`],
    [
      "kind: KubeProxyConfiguration",
      ": apiVersion: the apiVersion of KubeProxyConfiguration must be kubeproxy.config.k8s.io/v1alpha1",
    ],
    [
      "kind: KubeProxyConfiguration\napiVersion: componentconfig/v1alpha1",
      ": apiVersion componentconfig/v1alpha1: the apiVersion of KubeProxyConfiguration must be kubeproxy.config.k8s.io/v1alpha1",
    ],
    [`${configFile()}\n---\n${configFile()}`, ": kind KubeProxyConfiguration: must be defined once"],
    [
      `${configFile()}\n---\nkind: FairleadConfiguration\napiVersion: fairlead.dev/v1`,
      ": apiVersion fairlead.dev/v1: the apiVersion of FairleadConfiguration must be fairlead.dev/v1alpha1",
    ],
  ])("%j", (text, error) => {
    expect(errorsOf(parse([`--config=${FILE}`], text))).toEqual([`${FILE}${error}`]);
  });

  test.each([
    ["broken syntax", "mode: [ipvs"],
    ["a tab for indentation", "iptables:\n\tsyncPeriod: 1s"],
    [
      "aliases that multiply",
      `a: &a [${"x,".repeat(20)}]\nb: &b [${"*a,".repeat(20)}]\nc: &c [${"*b,".repeat(20)}]\nd: [${"*c,".repeat(20)}]`,
    ],
    ["an alias inside what it refers to", "mode: &a [*a]"],
    ["an alias of the whole", "&a {kind: *a}"],
    ["nesting without end", `a: ${"[".repeat(50_000)}`],
  ])("%s", (_name, text) => {
    const errors = errorsOf(parse([`--config=${FILE}`], text));
    expect(errors[0]).toMatch(new RegExp(`^${FILE}: is not valid YAML: .`));
    for (const error of errors) expect(error.length).toBeLessThan(300);
  });

  const SOURCES = `
{excludeCIDRsFrom: nodes} => multiCNI.excludeCIDRsFrom: nodes: must be a list of sources
{excludeCIDRsFrom: [nodes, kube-ovn]} => multiCNI.excludeCIDRsFrom[1]: kube-ovn: must be one of kube-ovn-subnets,
{excludeCIDRsFrom: [{source: custom}]} => multiCNI.excludeCIDRsFrom[0]: {"source":"custom"}: must be one of
{excludeCIDRsFrom: [nodes], clusterCIDRsFrom: [flannel, nodes]} => multiCNI.clusterCIDRsFrom[1]: nodes: is already listed in ${FILE}: multiCNI.excludeCIDRsFrom
{excludeCIDRsFrom: [{source: nodes, vpcs: [a]}]} => multiCNI.excludeCIDRsFrom[0].vpcs: ["a"]: is for kube-ovn-subnets
{serviceRules: {}} => multiCNI.serviceRules: {}: must be a list of rules
{serviceRules: [{annotation: a, namespaceLabel: b, ownership: foreign}]} => multiCNI.serviceRules[0]: {"annotation":"a","namespaceLabel":"b","ownership":"foreign"}: must be {annotation: NAME
{serviceRules: [{annotation: a, ownership: theirs}]} => multiCNI.serviceRules[0]: {"annotation":"a","ownership":"theirs"}: must be {annotation: NAME, ownership: foreign}
{serviceRules: [{annotation: 'a b', ownership: ours}]} => multiCNI.serviceRules[0].annotation: a b: must be a name, such as ovn.kubernetes.io/vpc
{cidrChanges: {maxForeignPercent: 101}} => multiCNI.cidrChanges.maxForeignPercent: 101: must be
{cidrChanges: {removalDelay: -1s}} => multiCNI.cidrChanges.removalDelay: -1s: must not be negative
`;
  test.each(rowsOf(SOURCES))("sources of CIDRs: %s", (multiCNI, error) => {
    const text = `${configFile()}\n---\nkind: FairleadConfiguration\napiVersion: fairlead.dev/v1alpha1\nmultiCNI: ${multiCNI}`;
    expect(errorsOf(parse([`--config=${FILE}`], text))).toEqual([expect.stringContaining(`${FILE}: ${error}`)]);
  });

  test("an unknown field of a source or a rule is ignored, and the rest is in effect", () => {
    const sources = "[{source: kube-ovn-subnets, inside: [10.16.0.0/12]}, {source: flannel, a: 1, b: 2}]";
    const rules = "[{namespaceLabel: team, owner: me, ownership: foreign}]";
    const multiCNI = `{excludeCIDRsFrom: ${sources}, excludedFrontends: all, serviceRules: ${rules}}`;
    const text = `${configFile()}\n---\nkind: FairleadConfiguration\napiVersion: fairlead.dev/v1alpha1\nmultiCNI: ${multiCNI}`;
    const result = parse([`--config=${FILE}`], text);
    expect(warningsOf(result)).toEqual(
      ["excludeCIDRsFrom[0].inside", "excludeCIDRsFrom[1].a", "excludeCIDRsFrom[1].b", "serviceRules[0].owner"].map(
        (path) => `${FILE}: multiCNI.${path}: unknown field, ignored`,
      ),
    );
    expect(configOf(result).multiCNI).toMatchObject({
      excludeCIDRsFrom: [{ source: "kube-ovn-subnets" }, { source: "flannel" }],
      serviceRules: [{ namespaceLabel: "team", ownership: "foreign" }],
    });
  });

  test("a FairleadConfiguration's values are checked as strictly", () => {
    const multiCNI = "multiCNI: {excludeClusterCIDRs: 10.244.0.0/16, mixedServices: some, ownershipAnnotaton: false}";
    const text = `${configFile()}\n---\nkind: FairleadConfiguration\napiVersion: fairlead.dev/v1alpha1\n${multiCNI}`;
    const result = parse([`--config=${FILE}`], text);
    expect(errorsOf(result)).toEqual([
      `${FILE}: multiCNI.excludeClusterCIDRs: 10.244.0.0/16: must be a list of CIDRs`,
      `${FILE}: multiCNI.mixedServices: some: must be own-endpoints, skip or all`,
    ]);
    expect(warningsOf(result)).toEqual([
      `${FILE}: multiCNI.ownershipAnnotaton: unknown field, ignored (did you mean ownershipAnnotation?)`,
    ]);
  });
});
