/** The sources that Fairlead knows, a row each, and those that an operator describes. */

import { fieldsOf, isAbsent, itemsOf, parseJSON, rangeCIDRs, stringOf } from "@fairlead/base";
import {
  ignored,
  type NetworkSource,
  NODES,
  type Reading,
  ReadingBuilder,
  type ResourceRef,
  recordsOf,
  type Selection,
  type SourceKind,
  type SourceSettings,
  shown,
  specOf,
} from "./source.ts";

/** The sources that Fairlead knows, a row each. */

/** The default VPC where no Vpc says that it is (--cluster-router gives it another name). */
const DEFAULT_VPC = "ovn-cluster";
/** The network between nodes and the overlay (--node-switch): no pod lives in it. */
const JOIN_SUBNET = "join";

const cluster = (plural: string, kind: string): ResourceRef => ({
  group: "kubeovn.io",
  version: "v1",
  plural,
  kind,
  namespaced: false,
});
const SUBNETS = cluster("subnets", "Subnet");
/** kube-ovn's VPCs: the default one decides which subnets count. */
export const VPCS = cluster("vpcs", "Vpc");

/**
 * kube-ovn's Subnets. Those of the default VPC's overlay count: other VPCs may have the same addresses, `join` has
 * nodes in it, an underlay (`vlan` without `logicalGateway`) may, and other providers serve secondary interfaces.
 * kube-ovn: pkg/apis/kubeovn/v1/subnet.go.
 *
 * Of Vpcs only `status.default` says something that Subnets do not: `status.subnets` is made from their `spec.vpc`, and
 * `spec.namespaces` names users of a VPC, not its addresses. kube-ovn: pkg/controller/vpc.go, init.go.
 */
const kubeOVNSubnets: SourceKind = {
  resources: [SUBNETS, VPCS],
  selection: ({ vpcs }) => defaultVpcs(vpcs),
  read(raw) {
    const spec = specOf(raw);
    if (nameOf(raw) === JOIN_SUBNET) return ignored("it joins nodes to the overlay");
    const provider = stringOf(spec["provider"]) || "ovn";
    if (provider !== "ovn") return ignored(`its provider is ${shown(provider)}`);
    if (stringOf(spec["vlan"]) && spec["logicalGateway"] !== true) return ignored("it is an underlay");
    const reading = new ReadingBuilder();
    reading.add("spec.cidrBlock", spec["cidrBlock"]);
    return { ...reading.done(), group: stringOf(spec["vpc"]) ?? "" };
  },
};

/** Reads of a Vpc its name, if it is the default one. */
export const VPC_SELECTION: Pick<Selection, "resource" | "read"> = {
  resource: VPCS,
  read: (raw) => (fieldsOf(fieldsOf(raw)["status"])["default"] === true ? nameOf(raw) : undefined),
};

/**
 * A Subnet without `spec.vpc` is in the default VPC: kube-ovn's controller writes it there sooner or later. Several are
 * the default one where its name was changed: the old one says so for ever.
 *
 * @param wanted the VPCs whose Subnets count; undefined: the default ones
 */
function defaultVpcs(wanted: readonly string[] | undefined): Selection {
  return {
    ...VPC_SELECTION,
    counts(vpc, selected) {
      const defaults = selected.size > 0 ? [...selected] : [DEFAULT_VPC];
      const names = wanted ?? defaults;
      return vpc === "" ? defaults.some((name) => names.includes(name)) : names.includes(vpc);
    },
  };
}

function nameOf(raw: unknown): string | undefined {
  return stringOf(fieldsOf(fieldsOf(raw)["metadata"])["name"]);
}

/**
 * Calico's IPPools, in the group of its own CRDs and in that of its API server, which has the same objects. A disabled
 * pool gives no new addresses, but pods still live in it. One that is for load balancers only never has pods.
 * Calico: api/pkg/apis/projectcalico/v3/ippool.go.
 */
const calicoIPPools: SourceKind = {
  resources: [
    { group: "crd.projectcalico.org", version: "v1", plural: "ippools", kind: "IPPool", namespaced: false },
    { group: "projectcalico.org", version: "v3", plural: "ippools", kind: "IPPool", namespaced: false },
  ],
  read(raw) {
    const spec = specOf(raw);
    const uses = itemsOf(spec["allowedUses"]);
    if (uses.length > 0 && uses.every((use) => use === "LoadBalancer")) return ignored("it is for load balancers only");
    const reading = new ReadingBuilder();
    reading.add("spec.cidr", spec["cidr"]);
    return reading.done();
  },
};

const pools = (version: string): ResourceRef => ({
  group: "cilium.io",
  version,
  plural: "ciliumpodippools",
  kind: "CiliumPodIPPool",
  namespaced: false,
});

/**
 * Cilium's pools of multi-pool IPAM. `cidrs` holds objects in v2 and texts in v2alpha1. Cilium:
 * pkg/k8s/apis/cilium.io/v2alpha1/ippool_types.go.
 */
const ciliumPools: SourceKind = {
  resources: [pools("v2"), pools("v2alpha1")],
  read(raw) {
    const spec = specOf(raw);
    const reading = new ReadingBuilder();
    for (const family of ["ipv4", "ipv6"]) {
      for (const [at, item] of itemsOf(fieldsOf(spec[family])["cidrs"]).entries()) {
        const field = `spec.${family}.cidrs[${at}]`;
        if (typeof item === "string") reading.add(field, item);
        else reading.add(`${field}.cidr`, fieldsOf(item)["cidr"]);
      }
    }
    return reading.done();
  },
};

/**
 * What Cilium gave each node: `podCIDRs` with cluster-pool IPAM, `pools` with multi-pool IPAM. Cilium:
 * pkg/k8s/apis/cilium.io/v2/types.go and pkg/ipam/types.
 */
const ciliumNodes: SourceKind = {
  resources: [{ group: "cilium.io", version: "v2", plural: "ciliumnodes", kind: "CiliumNode", namespaced: false }],
  writtenByNodes: true,
  read(raw) {
    const ipam = fieldsOf(specOf(raw)["ipam"]);
    const reading = new ReadingBuilder();
    reading.addAll("spec.ipam.podCIDRs", ipam["podCIDRs"]);
    for (const [at, pool] of recordsOf(fieldsOf(ipam["pools"])["allocated"]).entries()) {
      reading.addAll(`spec.ipam.pools.allocated[${at}].cidrs`, pool["cidrs"]);
    }
    return reading.done();
  },
};

const ANNOTATION = "k8s.ovn.org/node-subnets";

/**
 * What OVN-Kubernetes gave each node of its default network. The annotation is JSON: a list by network, or one text in
 * old versions. OVN-Kubernetes: go-controller/pkg/util/subnet_annotations.go.
 */
const ovnKubernetesNodes: SourceKind = {
  resources: [NODES],
  writtenByNodes: true,
  read(raw) {
    const reading = new ReadingBuilder();
    const written = fieldsOf(fieldsOf(fieldsOf(raw)["metadata"])["annotations"])[ANNOTATION];
    if (isAbsent(written)) return reading.done();
    const field = `annotation ${ANNOTATION}`;
    const subnets = fieldsOf(parseJSON(stringOf(written) ?? ""))["default"];
    if (typeof subnets === "string") reading.add(field, subnets);
    else if (Array.isArray(subnets)) reading.addAll(field, subnets);
    else reading.problem(field, written, 'must be JSON such as {"default":["10.130.0.0/23"]}');
    return reading.done();
  },
};

/** flannel's configuration, a JSON text in its ConfigMap. flannel: pkg/subnet/config.go. */
const flannel: SourceKind = {
  resources: [
    {
      group: "",
      version: "v1",
      plural: "configmaps",
      kind: "ConfigMap",
      namespaced: true,
      only: { namespace: "kube-flannel", name: "kube-flannel-cfg" },
    },
  ],
  read(raw) {
    const reading = new ReadingBuilder();
    const written = fieldsOf(fieldsOf(raw)["data"])["net-conf.json"];
    try {
      const config = fieldsOf(JSON.parse(stringOf(written) ?? ""));
      reading.add("net-conf.json: Network", config["Network"]);
      reading.add("net-conf.json: IPv6Network", config["IPv6Network"]);
    } catch {
      reading.problem("data.net-conf.json", written, 'must be JSON such as {"Network":"10.244.0.0/16"}');
    }
    return reading.done();
  },
};

/** Antrea's IPPools: each range is a CIDR, or a first and a last address. Antrea: pkg/apis/crd/v1beta1/types.go. */
const antreaIPPools: SourceKind = {
  resources: [{ group: "crd.antrea.io", version: "v1beta1", plural: "ippools", kind: "IPPool", namespaced: false }],
  read(raw) {
    const reading = new ReadingBuilder();
    for (const [at, range] of recordsOf(specOf(raw)["ipRanges"]).entries()) {
      const field = `spec.ipRanges[${at}]`;
      reading.add(`${field}.cidr`, range["cidr"]);
      if (!("start" in range) && !("end" in range)) continue;
      const cidrs = rangeCIDRs(stringOf(range["start"]) ?? "", stringOf(range["end"]) ?? "");
      if (cidrs === undefined) reading.problem(field, range, "start and end must be addresses of one family, in order");
      else reading.addAll(field, cidrs);
    }
    return reading.done();
  },
};

/** Spiderpool's pools; a disabled one still has pods. Spiderpool: pkg/k8s/apis/spiderpool.spidernet.io/v2beta1. */
const spiderpool: SourceKind = {
  resources: [
    {
      group: "spiderpool.spidernet.io",
      version: "v2beta1",
      plural: "spiderippools",
      kind: "SpiderIPPool",
      namespaced: false,
    },
  ],
  read(raw) {
    const reading = new ReadingBuilder();
    reading.add("spec.subnet", specOf(raw)["subnet"]);
    return reading.done();
  },
};

/** What the controller manager gave each node (core/v1 NodeSpec). */
const nodes: SourceKind = {
  resources: [NODES],
  writtenByNodes: true,
  read(raw) {
    const spec = specOf(raw);
    const reading = new ReadingBuilder();
    if (itemsOf(spec["podCIDRs"]).length > 0) reading.addAll("spec.podCIDRs", spec["podCIDRs"]);
    else reading.add("spec.podCIDR", spec["podCIDR"]);
    return reading.done();
  },
};

/** The sources by their names in a configuration; `custom` is not among them. */
export const sourceKinds = {
  "kube-ovn-subnets": kubeOVNSubnets,
  "calico-ippools": calicoIPPools,
  "cilium-pools": ciliumPools,
  "cilium-nodes": ciliumNodes,
  "ovn-kubernetes-nodes": ovnKubernetesNodes,
  flannel,
  "antrea-ippools": antreaIPPools,
  spiderpool,
  nodes,
} as const satisfies Readonly<Record<string, SourceKind>>;

/** The name of a source, as the configuration has it. */
export type SourceName = keyof typeof sourceKinds;

/** One of the sources that Fairlead knows. */
export function networkSource(name: SourceName, settings: SourceSettings = {}): NetworkSource {
  const kind: SourceKind = sourceKinds[name];
  const { vpcs, only } = settings;
  const asked = [...(vpcs === undefined ? [] : [...vpcs].sort()), ...(only ? [`${only.namespace}/${only.name}`] : [])];
  const selection = kind.selection && { selection: kind.selection(settings) };
  return {
    id: name,
    scope: `${name}${asked.length === 0 ? "" : `(${asked.join(",")})`}`,
    resources: only === undefined ? kind.resources : kind.resources.map((resource) => ({ ...resource, only })),
    ...selection,
    read: kind.read,
  };
}

/** A source that an operator describes. */
export interface CustomSettings {
  /** `plural.version.group`, as `spiderippools.v2beta1.spiderpool.spidernet.io`; `configmaps.v1` of the core group. */
  readonly resource: string;
  /** The only object that is read. Absent: all, which must be cluster-scoped then. */
  readonly only?: NonNullable<ResourceRef["only"]>;
  /**
   * Where the CIDRs stand, as `spec.subnet`: names between dots, `\.` for a dot in a name. Lists on the way are gone
   * through, `[]` behind a name says so and may be left out. A text on the way is read as JSON, as in a ConfigMap.
   */
  readonly fields: readonly string[];
}

/**
 * Any other resource whose objects are cluster-scoped, or one object of any.
 *
 * @throws RangeError for a resource or field that has no such form
 */
export function customSource({ resource, fields, only }: CustomSettings): NetworkSource {
  const paths = fields.map((field) => ({ field, names: namesIn(field) }));
  return {
    id: resource,
    scope: `${resource}(${[...fields, ...(only ? [`${only.namespace}/${only.name}`] : [])].sort().join(",")})`,
    resources: [{ ...resourceRef(resource), ...(only && { namespaced: true, only }) }],
    read(raw): Reading {
      const reading = new ReadingBuilder();
      for (const { field, names } of paths) for (const value of valuesAt(raw, names)) reading.add(field, value);
      return reading.done();
    },
  };
}

const RESOURCE = /^([a-z](?:[-a-z0-9]*[a-z0-9])?)\.(v[0-9][a-z0-9]*)(?:\.([a-z0-9][-a-z0-9.]*))?$/;

/** @throws RangeError when it is not `plural.version.group` */
function resourceRef(text: string): ResourceRef {
  const [, plural, version, group = ""] = RESOURCE.exec(text) ?? [];
  if (plural === undefined || version === undefined) {
    const form = "plural.version.group, such as ippools.v1.crd.projectcalico.org, or configmaps.v1 of the core group";
    throw new RangeError(`${JSON.stringify(text)} must be ${form}`);
  }
  const kind = group === "" && plural === "configmaps" ? "ConfigMap" : plural;
  return { group, version, plural, kind, namespaced: false };
}

/** @throws RangeError when a name is empty */
function namesIn(field: string): readonly string[] {
  const names = field.split(/(?<!\\)\./).map((name) => name.replace(/\[\]$/, "").replaceAll("\\.", "."));
  if (names.includes("")) throw new RangeError(`${JSON.stringify(field)} must be names between dots, as spec.subnet`);
  return names;
}

function* valuesAt(value: unknown, [name, ...others]: readonly string[]): Generator<unknown, void> {
  if (Array.isArray(value)) {
    for (const item of value) yield* valuesAt(item, name === undefined ? [] : [name, ...others]);
  } else if (name === undefined) yield value;
  else if (typeof value === "string") {
    if (value.length <= LONGEST_JSON) yield* valuesAt(parseJSON(value), [name, ...others]);
  } else if (Object.hasOwn(fieldsOf(value), name)) yield* valuesAt(fieldsOf(value)[name], others);
}

/** Longer texts are not a network's configuration. */
const LONGEST_JSON = 65_536;
