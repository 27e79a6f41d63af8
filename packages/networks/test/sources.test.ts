import { readFileSync } from "node:fs";
import { expectReadmeExample } from "@fairlead/tooling/readme";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SOURCE_FILES } from "../scripts/source-files.ts";
import {
  customSource,
  type NetworkSource,
  networkSource,
  type SourceKind,
  type SourceName,
  sourceKinds,
} from "../src/index.ts";

/** What a source reads of an object, which is a spec where it has no metadata and no data. */
type Row = readonly [
  what: string,
  raw: object,
  cidrs: string,
  more?: { readonly ignored?: string; readonly group?: string },
];

const of = networkSource;
const subnet = (spec: object, name = "ovn-default") => ({ metadata: { name }, spec });

const rows: Readonly<Partial<Record<SourceName, readonly Row[]>>> = {
  "kube-ovn-subnets": [
    [
      "the default VPC's subnet, both families",
      { cidrBlock: "10.16.0.0/16,fd00:10:16::/112", vpc: "ovn-cluster", protocol: "Dual", provider: "ovn" },
      "10.16.0.0/16 fd00:10:16::/112",
      { group: "ovn-cluster" },
    ],
    ["a subnet as people write it: no VPC, no provider", { cidrBlock: "10.17.0.0/16" }, "10.17.0.0/16", { group: "" }],
    [
      "a subnet of another VPC, which Vpcs decide of",
      { cidrBlock: "10.17.0.0/16", vpc: "blue" },
      "10.17.0.0/16",
      { group: "blue" },
    ],
    [
      "kube-ovn's join",
      subnet({ cidrBlock: "100.64.0.0/16", vpc: "ovn-cluster" }, "join"),
      "",
      { ignored: "it joins nodes to the overlay" },
    ],
    ["an underlay", { cidrBlock: "172.18.0.0/16", vlan: "vlan0" }, "", { ignored: "it is an underlay" }],
    [
      "an underlay behind a logical gateway",
      { cidrBlock: "172.18.0.0/16", vlan: "vlan0", logicalGateway: true },
      "172.18.0.0/16",
      { group: "" },
    ],
    [
      "a subnet of secondary interfaces",
      { cidrBlock: "172.17.0.0/16", provider: "attachnet.default.ovn" },
      "",
      { ignored: 'its provider is "attachnet.default.ovn"' },
    ],
  ],
  "calico-ippools": [
    [
      "a disabled pool: its pods live on",
      { cidr: "10.144.0.0/16", disabled: true, allowedUses: ["Workload", "Tunnel"] },
      "10.144.0.0/16",
    ],
    [
      "a pool for load balancers only",
      { cidr: "192.0.2.0/24", allowedUses: ["LoadBalancer"] },
      "",
      { ignored: "it is for load balancers only" },
    ],
  ],
  "cilium-pools": [
    [
      "v2, objects",
      {
        ipv4: { cidrs: [{ cidr: "10.0.0.0/16" }], maskSize: 24 },
        ipv6: { cidrs: [{ cidr: "fd00::/104" }] },
      },
      "10.0.0.0/16 fd00::/104",
    ],
    ["v2alpha1, texts", { ipv4: { cidrs: ["10.0.0.0/16"] } }, "10.0.0.0/16"],
  ],
  "cilium-nodes": [
    [
      "both kinds of IPAM",
      { ipam: { podCIDRs: ["10.1.0.0/24"], pools: { allocated: [{ pool: "a", cidrs: ["10.2.0.0/24"] }] } } },
      "10.1.0.0/24 10.2.0.0/24",
    ],
  ],
  "ovn-kubernetes-nodes": [
    [
      "a list by network",
      {
        metadata: {
          annotations: { "k8s.ovn.org/node-subnets": '{"default":["10.130.0.0/23","fd01::/64"],"x":["1"]}' },
        },
      },
      "10.130.0.0/23 fd01::/64",
    ],
    [
      "a text, as old versions write it",
      { metadata: { annotations: { "k8s.ovn.org/node-subnets": '{"default":"10.130.0.0/23"}' } } },
      "10.130.0.0/23",
    ],
    ["a node without the annotation", { metadata: {} }, ""],
  ],
  flannel: [
    [
      "both families",
      { data: { "net-conf.json": '{"Network":"10.244.0.0/16","IPv6Network":"fd00:244::/48","Backend":{}}' } },
      "10.244.0.0/16 fd00:244::/48",
    ],
  ],
  "antrea-ippools": [
    [
      "a CIDR and a range",
      { ipRanges: [{ cidr: "10.10.0.0/24" }, { start: "10.10.1.2", end: "10.10.1.9" }] },
      "10.10.0.0/24 10.10.1.2/31 10.10.1.4/30 10.10.1.8/31",
    ],
    ["a range of IPv6", { ipRanges: [{ start: "fd00::", end: "fd00::ffff" }] }, "fd00::/112"],
  ],
  spiderpool: [["a disabled pool", { subnet: "10.6.0.0/16", disable: true }, "10.6.0.0/16"]],
  nodes: [
    ["podCIDRs", { podCIDR: "10.7.0.0/24", podCIDRs: ["10.7.0.0/24", "fd07::/64"] }, "10.7.0.0/24 fd07::/64"],
    ["podCIDR, of old objects", { podCIDR: "10.7.0.0/24" }, "10.7.0.0/24"],
  ],
};

type SourceRow = [source: NetworkSource, ...row: Row];

const customRows: readonly SourceRow[] = [
  [
    customSource({
      resource: "pools.v1.example.org",
      fields: ["spec.subnet", "spec.ranges[].cidrs", "metadata.annotations.example\\.org/cidr"],
    }),
    "a text, a list of texts, a name with dots",
    {
      metadata: { annotations: { "example.org/cidr": "10.3.0.0/16" } },
      spec: { subnet: "10.1.0.0/16", ranges: [{ cidrs: ["10.2.0.0/24", "10.2.1.0/24"] }, {}] },
    },
    "10.1.0.0/16 10.2.0.0/24 10.2.1.0/24 10.3.0.0/16",
  ],
  [
    customSource({
      resource: "configmaps.v1",
      only: { namespace: "kube-system", name: "canal-config" },
      fields: ["data.net-conf\\.json.Network", "data.broken.Network"],
    }),
    "JSON in a key of a ConfigMap of the core group",
    {
      metadata: { namespace: "kube-system", name: "canal-config" },
      data: { "net-conf.json": '{"Network":"10.42.0.0/16"}', broken: "{" },
    },
    "10.42.0.0/16",
  ],
];

test("flannel's ConfigMap has a namespace and a name that can be set, and what was learned from another is not its own", () => {
  const only = { namespace: "kube-system", name: "canal-config" };
  const { resources, scope } = networkSource("flannel", { only });
  expect(resources).toEqual([expect.objectContaining({ plural: "configmaps", only })]);
  expect(scope).toBe("flannel(kube-system/canal-config)");
});

test("a plural may have hyphens, and a group may be the core one", () => {
  const refs = ["network-attachment-definitions.v1.k8s.cni.cncf.io", "ovn-eips.v1.kubeovn.io", "nodes.v1"].map(
    (resource) => customSource({ resource, fields: ["spec"] }).resources[0],
  );
  expect(refs).toMatchObject([
    { group: "k8s.cni.cncf.io", version: "v1", plural: "network-attachment-definitions" },
    { group: "kubeovn.io", version: "v1", plural: "ovn-eips" },
    { group: "", version: "v1", plural: "nodes" },
  ]);
});

const ofNames = Object.entries(rows).flatMap(([name, list]) =>
  list.map((row): SourceRow => [networkSource(name as SourceName), ...row]),
);

test.each<SourceRow>([...ofNames, ...customRows])("%o: %s", ({ read }, _what, raw, cidrs, more) => {
  const object = "metadata" in raw || "data" in raw ? raw : subnet(raw);
  expect(read(object)).toEqual({ cidrs: cidrs.split(" ").filter((cidr) => cidr !== ""), problems: [], ...more });
});

describe("kube-ovn's Vpcs", () => {
  const vpc = (name: string, status?: object) => ({ metadata: { name }, spec: { namespaces: ["a"] }, status });
  const theDefault = (name: string) => vpc(name, { default: true, subnets: ["ovn-default", "join"] });
  test.each([
    { what: "no Vpc says that it is the default one", vpcs: [], subnets: ["ovn-cluster", ""] },
    { what: "only one of another name", vpcs: [vpc("blue", { default: false })], subnets: ["ovn-cluster", ""] },
    { what: "the default one has another name", vpcs: [theDefault("main"), vpc("ovn-cluster")], subnets: ["main", ""] },
    {
      what: "its name was changed: kube-ovn leaves the flag at the old one",
      vpcs: [theDefault("main"), theDefault("ovn-cluster")],
      subnets: ["ovn-cluster", "main", ""],
    },
    { what: "one that was asked for", asked: ["blue"], vpcs: [theDefault("main")], subnets: ["blue"] },
    { what: "the default one was asked for", asked: ["main"], vpcs: [theDefault("main")], subnets: ["main", ""] },
    { what: "ovn-cluster was asked for", asked: ["ovn-cluster"], vpcs: [], subnets: ["ovn-cluster", ""] },
  ])("$what", ({ asked, vpcs, subnets }) => {
    const { selection } = of("kube-ovn-subnets", asked && { vpcs: asked });
    const selected = new Set(vpcs.flatMap((raw) => selection?.read(raw) ?? []));
    const counting = ["ovn-cluster", "main", "blue", ""].filter((group) => selection?.counts(group, selected));
    expect(counting).toEqual(subnets);
  });

  test("whatever an object is, it selects a name or nothing", () => {
    const read = of("kube-ovn-subnets").selection?.read;
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (name, status) => {
        const found = read?.({ metadata: { name }, status: { default: status } });
        expect(found).toBe(status === true && typeof name === "string" ? name : undefined);
        expect(read?.(name)).toBeUndefined();
      }),
    );
  });
});

describe("wrong objects", () => {
  test.each<[NetworkSource, object, string]>([
    [of("kube-ovn-subnets"), subnet({ cidrBlock: 7 }), 'spec.cidrBlock is "7"; must be a CIDR'],
    [
      of("cilium-nodes"),
      subnet({ ipam: { podCIDRs: "10.0.0.0/8" } }),
      'spec.ipam.podCIDRs is "10.0.0.0/8"; must be a list of CIDRs',
    ],
    [
      of("antrea-ippools"),
      subnet({ ipRanges: [{ start: "10.0.0.9", end: "10.0.0.1" }] }),
      "start and end must be addresses of one family, in order",
    ],
    [of("flannel"), { data: { "net-conf.json": "{" } }, "must be JSON such as"],
    [
      of("ovn-kubernetes-nodes"),
      { metadata: { annotations: { "k8s.ovn.org/node-subnets": "[]" } } },
      "must be JSON such as",
    ],
  ])("%o", ({ read }, raw, problem) => {
    const reading = read(raw);
    expect(reading.cidrs).toEqual([]);
    expect(reading.problems.join()).toContain(problem);
  });

  test("more CIDRs than anybody has cost no more than the first thousand", () => {
    const { cidrs, problems } = of("kube-ovn-subnets").read(subnet({ cidrBlock: "10.0.0.0/24,".repeat(100_000) }));
    expect(cidrs).toHaveLength(1_000);
    expect(problems).toEqual(['spec.cidrBlock is "10.0.0.0/24"; only the first 1000 CIDRs are used']);
  });

  test("whatever an object is, no source throws, and its problems are short", () => {
    const names = Object.keys(sourceKinds) as SourceName[];
    const text = fc.oneof(fc.string(), fc.constantFrom("10.0.0.0/8", "{", '{"default":[1]}', "10.0.0.1"));
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 6 }, text, fc.integer(), fc.constant(null), fc.array(tie("tree")), tie("record")),
      record: fc.dictionary(
        fc.constantFrom(
          "spec",
          "metadata",
          "annotations",
          "data",
          "net-conf.json",
          "k8s.ovn.org/node-subnets",
          "cidr",
          "cidrs",
          "cidrBlock",
          "ipam",
          "podCIDRs",
          "pools",
          "allocated",
          "ipv4",
          "network",
          "layer2",
          "layer3",
          "role",
          "subnets",
          "ipRanges",
          "start",
          "end",
          "subnet",
          "vpc",
          "allowedUses",
          "__proto__",
        ),
        fc.oneof(tie("tree"), text),
      ),
    }));
    fc.assert(
      fc.property(fc.constantFrom(...names), tree, (name, raw) => {
        const { cidrs, problems } = networkSource(name).read(raw);
        expect(cidrs.every((cidr) => typeof cidr === "string")).toBe(true);
        expect(problems.every((problem) => problem.length < 300)).toBe(true);
      }),
      { numRuns: runs(2_000) },
    );
  });
});

test.each(["ippools", "ippools.projectcalico.org", "IPPools.v3.projectcalico.org", "a/../b.v1.c"])(
  "the resource %s is refused",
  (resource) => {
    expect(() => customSource({ resource, fields: ["spec"] })).toThrow("must be plural.version.group");
  },
);

test.each(["", "spec.", ".spec", "spec..cidr"])("the field %j is refused", (field) => {
  expect(() => customSource({ resource: "pools.v1.example.org", fields: [field] })).toThrow("names between dots");
});

const textOf = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

test.each(SOURCE_FILES)(
  "$path is as `pnpm --filter @fairlead/networks run sources` writes it",
  ({ path, rewritten }) => {
    const text = textOf(path);
    expect(text).toBe(rewritten(text));
  },
);

/** What only people can write: nodes are in every cluster, and need no resource there. */
test.each([
  ["packages/networks/README.md", (name: string) => `\`${name}\``],
  ["e2e/src/specs/networks/sources.ts", (name: string) => name],
])("%s has every source", (path, written) => {
  const text = textOf(path);
  // Those that nodes write need within, which a flag cannot give.
  const own = Object.entries<SourceKind>(sourceKinds).filter(
    ([, { resources, writtenByNodes }]) => resources.length > 0 && (path.endsWith(".md") || writtenByNodes !== true),
  );
  expect(own.flatMap(([name]) => (text.includes(written(name)) ? [] : [name]))).toEqual([]);
});

test("lab/src/control-plane/network-resources.ts has every resource that is a network's own", () => {
  const text = textOf("lab/src/control-plane/network-resources.ts");
  const own = Object.values(sourceKinds).flatMap(({ resources }) => resources.filter(({ group }) => group !== ""));
  expect(
    own.flatMap(({ group, plural }) => (text.includes(`"${group}"`) && text.includes(`"${plural}"`) ? [] : [plural])),
  ).toEqual([]);
});

test("README example", () => expectReadmeExample(import.meta.dirname));
