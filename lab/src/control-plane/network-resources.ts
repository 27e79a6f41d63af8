/** The custom resources of pod networks, with the schemas of their fields. */

import type { ApiObject } from "./api-client.ts";

/** A part of an OpenAPI schema, as a CustomResourceDefinition has it. */
type Schema = Readonly<Record<string, unknown>>;

const TEXT: Schema = { type: "string" };
const FLAG: Schema = { type: "boolean" };
const TEXTS: Schema = { type: "array", items: TEXT };

const SELECTOR: Schema = fields({
  matchLabels: { type: "object", additionalProperties: TEXT },
  matchExpressions: items(fields({ key: TEXT, operator: TEXT, values: TEXTS }, "key", "operator")),
});

/** kubeovn/kube-ovn: nothing is required, and no text is checked; its webhook and controller do that. */
const SUBNET = fields({
  spec: fields({
    ...{ cidrBlock: TEXT, protocol: TEXT, provider: TEXT, vlan: TEXT, vpc: TEXT, gateway: TEXT, gatewayType: TEXT },
    ...{ default: FLAG, private: FLAG, natOutgoing: FLAG, enableLb: FLAG, logicalGateway: FLAG },
    ...{ u2oInterconnection: FLAG, namespaces: TEXTS, excludeIps: TEXTS, allowSubnets: TEXTS, vips: TEXTS },
    ...{ mtu: { type: "integer", format: "int32" }, namespaceSelectors: items(SELECTOR) },
  }),
  status: fields({ activateGateway: TEXT, v4availableIPs: { type: "number" }, v4usingIPs: { type: "number" } }),
});

const VPC = fields({
  spec: fields({ namespaces: TEXTS, defaultSubnet: TEXT, enableExternal: FLAG }),
  status: fields({ default: FLAG, standby: FLAG, router: TEXT, defaultLogicalSwitch: TEXT, subnets: TEXTS }),
});

const CIDR: Schema = { type: "string", format: "cidr" };

const ENCAPSULATION = oneOf("Never", "Always", "CrossSubnet");

/** projectcalico/calico: the same in its own group and in the one that its API server has. */
const CALICO_IP_POOL = fields({
  spec: holds(
    fields(
      {
        cidr: fixed({ ...CIDR, maxLength: 48 }),
        blockSize: fixed(range(0, 128)),
        ...{ ipipMode: ENCAPSULATION, vxlanMode: ENCAPSULATION, natOutgoing: FLAG, disabled: FLAG },
        ...{ disableBGPExport: FLAG, nodeSelector: { ...TEXT, default: "all()" }, namespaceSelector: TEXT },
        assignmentMode: { ...oneOf("Automatic", "Manual"), default: "Automatic" },
        allowedUses: items(oneOf("Workload", "Tunnel", "LoadBalancer"), { maxItems: 10 }),
      },
      "cidr",
    ),
    "[has(self.ipipMode) ? self.ipipMode : 'Never', has(self.vxlanMode) ? self.vxlanMode : 'Never'].exists(m, m == 'Never')",
    "one of ipipMode and vxlanMode at most",
  ),
});

/** cilium/cilium */
const CILIUM_NODE = fields(
  {
    spec: fields({
      addresses: items(fields({ ip: TEXT, type: TEXT })),
      ipam: fields({
        podCIDRs: TEXTS,
        pools: fields({
          allocated: items(fields({ pool: { ...TEXT, minLength: 1 }, cidrs: items(CIDR) }, "pool")),
        }),
      }),
    }),
  },
  "spec",
);

const poolOf = (longest: number) =>
  fields({ cidrs: items(fields({ cidr: CIDR }, "cidr"), { minItems: 1 }), maskSize: range(1, longest) }, "maskSize");

const CILIUM_POD_IP_POOL = fields(
  { spec: fields({ ipv4: poolOf(32), ipv6: poolOf(128), namespaceSelector: SELECTOR, podSelector: SELECTOR }) },
  "spec",
);

/** ovn-kubernetes/ovn-kubernetes */
const NETWORK_CIDR = holds({ ...TEXT, maxLength: 43 }, "isCIDR(self)", "must be a CIDR");
const ROLE = oneOf("Primary", "Secondary");
const LAYER2 = fixed(
  fields({ role: ROLE, subnets: items(NETWORK_CIDR, { minItems: 1, maxItems: 2 }), mtu: range(576, 65_536) }, "role"),
);
const LAYER3 = fields(
  {
    role: fixed(ROLE),
    subnets: items(fields({ cidr: NETWORK_CIDR, hostSubnet: range(1, 127) }, "cidr"), { minItems: 1, maxItems: 400 }),
  },
  "role",
  "subnets",
);

const USER_DEFINED_NETWORK = fields({ spec: network({ Layer2: LAYER2, Layer3: LAYER3 }) }, "spec");

const LOCALNET = fixed(
  fields(
    { role: oneOf("Secondary"), physicalNetworkName: TEXT, subnets: items(NETWORK_CIDR, { minItems: 1, maxItems: 2 }) },
    "physicalNetworkName",
    "role",
  ),
);

const CLUSTER_USER_DEFINED_NETWORK = fields(
  {
    spec: fields(
      { namespaceSelector: SELECTOR, network: network({ Layer2: LAYER2, Layer3: LAYER3, Localnet: LOCALNET }) },
      "namespaceSelector",
      "network",
    ),
  },
  "spec",
);

/** antrea-io/antrea */
const ADDRESS: Schema = { type: "string", oneOf: [{ format: "ipv4" }, { format: "ipv6" }] };
const ANTREA_RANGE: Schema = {
  ...fields({ cidr: CIDR, start: ADDRESS, end: ADDRESS }),
  oneOf: [{ required: ["cidr"] }, { required: ["start", "end"] }],
};

const ANTREA_IP_POOL = fields(
  {
    spec: fields(
      {
        ipRanges: items(ANTREA_RANGE),
        subnetInfo: fields(
          { gateway: fixed(ADDRESS), prefixLength: fixed(range(1, 127)), vlan: range(0, 4_094) },
          "gateway",
          "prefixLength",
        ),
      },
      "ipRanges",
      "subnetInfo",
    ),
  },
  "spec",
);

/** spidernet-io/spiderpool */
const SPIDER_IP_POOL = fields({
  spec: fields(
    {
      ...{ subnet: TEXT, gateway: TEXT, ips: TEXTS, excludeIPs: TEXTS, namespaceName: TEXTS, nodeName: TEXTS },
      ...{ default: { ...FLAG, default: false }, disable: { ...FLAG, default: false } },
      ipVersion: { type: "integer", enum: [4, 6] },
    },
    "subnet",
  ),
  status: fields({ totalIPCount: { type: "integer" }, allocatedIPCount: { type: "integer" } }),
});

/**
 * What pod networks describe themselves by. The schemas have, of the fields about pods' addresses, the names, types,
 * required ones and limits of each project's own CustomResourceDefinition (network-schemas.ts); what it has alongside
 * them, the API server drops here. Status is written apart from the rest where the project has it so.
 */
export const networkResources: readonly ApiObject[] = [
  resourceDefinition("kubeovn.io", "Subnet", "subnets", { v1: SUBNET }),
  resourceDefinition("kubeovn.io", "Vpc", "vpcs", { v1: VPC }),
  resourceDefinition("crd.projectcalico.org", "IPPool", "ippools", { v1: CALICO_IP_POOL }),
  resourceDefinition("projectcalico.org", "IPPool", "ippools", { v3: CALICO_IP_POOL }),
  resourceDefinition("cilium.io", "CiliumNode", "ciliumnodes", { v2: CILIUM_NODE }),
  resourceDefinition("cilium.io", "CiliumPodIPPool", "ciliumpodippools", { v2: CILIUM_POD_IP_POOL }),
  resourceDefinition("k8s.ovn.org", "ClusterUserDefinedNetwork", "clusteruserdefinednetworks", {
    v1: CLUSTER_USER_DEFINED_NETWORK,
  }),
  resourceDefinition(
    "k8s.ovn.org",
    "UserDefinedNetwork",
    "userdefinednetworks",
    { v1: USER_DEFINED_NETWORK },
    "Namespaced",
  ),
  resourceDefinition("crd.antrea.io", "IPPool", "ippools", { v1beta1: ANTREA_IP_POOL }),
  resourceDefinition("spiderpool.spidernet.io", "SpiderIPPool", "spiderippools", { v2beta1: SPIDER_IP_POOL }),
];

/** One of them. */
export function networkResource(group: string, kind: string): ApiObject {
  const found = networkResources.find(({ spec: of }) => isOf(of, group, kind));
  if (found === undefined) throw new Error(`no resource ${kind} of ${group} is written down`);
  return found;
}

function isOf(spec: unknown, group: string, kind: string): boolean {
  const { group: itsGroup, names }: { readonly group?: unknown; readonly names?: { readonly kind?: unknown } } =
    typeof spec === "object" && spec !== null ? spec : {};
  return itsGroup === group && names?.kind === kind;
}

/** @param versions each with its schema; the first is stored */
export function resourceDefinition(
  group: string,
  kind: string,
  plural: string,
  versions: Readonly<Record<string, Schema>>,
  scope: "Cluster" | "Namespaced" = "Cluster",
): ApiObject {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${group}`,
      // Names that look like Kubernetes' own are let in with such a link only.
      annotations: { "api-approved.kubernetes.io": "unapproved, for tests" },
    },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: Object.entries(versions).map(([name, openAPIV3Schema], at) => ({
        name,
        served: true,
        storage: at === 0,
        schema: { openAPIV3Schema },
        ...(kind !== "CiliumPodIPPool" && { subresources: { status: {} } }),
      })),
    },
  };
}

type Fields = Readonly<Record<string, Schema>>;

/** @param required the names of those that an object must have */
function fields(properties: Fields, ...required: readonly string[]): Schema {
  return { type: "object", properties, ...(required.length > 0 && { required }) };
}

function items(schema: Schema, limits: Schema = {}): Schema {
  return { type: "array", items: schema, ...limits };
}

function oneOf(...values: readonly string[]): Schema {
  return { type: "string", enum: values };
}

function range(minimum: number, maximum: number): Schema {
  return { type: "integer", minimum, maximum };
}

/** @param rule in the Common Expression Language, for every write */
function holds(schema: Schema, rule: string, message: string): Schema {
  return { ...schema, "x-kubernetes-validations": [{ rule, message }] };
}

function fixed(schema: Schema): Schema {
  return holds(schema, "self == oldSelf", "cannot be changed");
}

/** @param parts by the topology that each is for */
function network(parts: Fields): Schema {
  const name = (topology: string) => topology.toLowerCase();
  const named = Object.entries(parts).map(([topology, schema]) => [name(topology), schema] as const);
  const rules = Object.keys(parts).map((one) => `(self.topology == '${one}') == has(self.${name(one)})`);
  return holds(
    fields({ topology: fixed(oneOf(...Object.keys(parts))), ...Object.fromEntries(named) }, "topology"),
    rules.join(" && "),
    "must have the part of its topology, and no other",
  );
}
