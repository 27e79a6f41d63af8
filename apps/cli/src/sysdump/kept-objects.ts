/** Which fields of the cluster's objects an archive keeps. */

import { fieldsOf, isObject } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { OtherResource } from "@fairlead/watch";
import { parse } from "yaml";
import {
  address,
  cidr,
  cidrs,
  either,
  fields,
  flag,
  jsonText,
  type Keep,
  listOf,
  name,
  number,
  oneOf,
  recordOf,
  text,
  time,
} from "./keep.ts";

const CLUSTER_IP = either(address, oneOf("None", ""));
/** The empty one is that of a single port. */
const PORT_NAME = either(name, oneOf(""));

const PROTOCOL = oneOf("TCP", "UDP", "SCTP");
const POLICY = oneOf("Cluster", "Local");

/** @param annotations that rules of the configuration ask for, alongside Fairlead's own */
export function serviceKeep(annotations: Iterable<string>): Keep {
  const asked = Object.fromEntries(Array.from(annotations, (one) => [one, name]));
  return fields({
    apiVersion: oneOf("v1"),
    kind: oneOf("Service"),
    metadata: metadata({
      labels: { "service.kubernetes.io/service-proxy-name": name, "k8s-app": oneOf("kube-dns") },
      annotations: {
        "ovn.kubernetes.io/vpc": name,
        ...asked,
        "fairlead.dev/node-port-addresses": cidrs,
        "fairlead.dev/ownership": oneOf("ours", "foreign"),
        "fairlead.dev/ipvs-scheduler": text(/^[a-z]{1,6}$/),
        "fairlead.dev/fast-path": oneOf("off"),
        "fairlead.dev/balance": oneOf("random", "source-hash"),
        "fairlead.dev/local-port": text(/^(?:(?:[a-z0-9-]{1,63}=)?\d{1,5}(?:,|$))+$/),
      },
    }),
    spec: fields({
      type: oneOf("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
      clusterIP: CLUSTER_IP,
      clusterIPs: listOf(CLUSTER_IP),
      ipFamilies: listOf(oneOf("IPv4", "IPv6")),
      ipFamilyPolicy: oneOf("SingleStack", "PreferDualStack", "RequireDualStack"),
      ports: listOf(
        fields({ name: PORT_NAME, protocol: PROTOCOL, port: number, nodePort: number, targetPort: number }),
      ),
      externalIPs: listOf(address),
      loadBalancerSourceRanges: listOf(cidr),
      internalTrafficPolicy: POLICY,
      externalTrafficPolicy: POLICY,
      sessionAffinity: oneOf("None", "ClientIP"),
      sessionAffinityConfig: fields({ clientIP: fields({ timeoutSeconds: number }) }),
      trafficDistribution: text(/^Prefer[A-Za-z]{1,20}$/),
      healthCheckNodePort: number,
      publishNotReadyAddresses: flag,
    }),
    status: fields({
      loadBalancer: fields({ ingress: listOf(fields({ ip: address, ipMode: oneOf("VIP", "Proxy") })) }),
    }),
  });
}

export const ENDPOINT_SLICE: Keep = fields({
  apiVersion: oneOf("discovery.k8s.io/v1"),
  kind: oneOf("EndpointSlice"),
  metadata: metadata({
    labels: {
      "kubernetes.io/service-name": name,
      "k8s.ovn.org/service-name": name,
      "endpointslice.kubernetes.io/managed-by": name,
    },
    annotations: {
      "endpoints.kubernetes.io/last-change-trigger-time": time,
      "k8s.ovn.org/endpointslice-network": name,
      "k8s.ovn.org/source-endpointslice": name,
    },
  }),
  addressType: oneOf("IPv4", "IPv6", "FQDN"),
  ports: listOf(fields({ name: PORT_NAME, protocol: PROTOCOL, port: number })),
  endpoints: listOf(
    fields({
      addresses: listOf(address),
      conditions: fields({ ready: flag, serving: flag, terminating: flag }),
      nodeName: name,
      zone: name,
      hints: fields({ forZones: listOf(fields({ name })), forNodes: listOf(fields({ name })) }),
    }),
  ),
});

export const SERVICE_CIDR: Keep = fields({
  apiVersion: oneOf("networking.k8s.io/v1", "networking.k8s.io/v1beta1"),
  kind: oneOf("ServiceCIDR"),
  metadata: metadata(),
  spec: fields({ cidrs: listOf(cidr) }),
});

type Networks = Pick<AgentConfig["multiCNI"], "clusterCIDRsFrom" | "excludeCIDRsFrom" | "serviceRules">;

/** Where objects say their kind. */
const KIND = {
  apiVersion: text(/^[a-z0-9.-]{1,200}(?:\/v\d[a-z0-9]{0,10})?$/),
  kind: text(/^[A-Za-z]{1,63}$/),
} as const;

const ACCEPTED = yamlText(listOf(fields({ cidr, source: name, until: time })));
const SERVICE_KEYS = yamlText(listOf(text(/^[a-z0-9-]{1,63}\/[a-z0-9.-]{1,253}$/)));

/** The two ConfigMaps that agents read; nothing of any other one is kept. */
const CONFIG_MAP = object({
  data: fields({
    "net-conf.json": jsonText(fields({ Network: cidr, IPv6Network: cidr })),
    accepted: ACCEPTED,
    forgotten: ACCEPTED,
    unprotected: SERVICE_KEYS,
  }),
});

const TYPES = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"] as const;
/** `v1.37.1`, `v1.33.4+k3s1` */
const RELEASE = text(/^v?\d+\.\d+\.\d+(?:[-+][a-z0-9.-]{1,40})?$/);

/** Of OVN-Kubernetes: CIDRs by network, one text in old versions. */
const NODE_SUBNETS = jsonText(recordOf(/^[a-z0-9.-]{1,63}$/, either(cidrs, listOf(cidr))));

const NODE: Keep = fields({
  apiVersion: oneOf("v1"),
  kind: oneOf("Node"),
  metadata: metadata({
    labels: {
      "topology.kubernetes.io/zone": name,
      "kubernetes.io/hostname": name,
      "kubernetes.io/os": name,
      "kubernetes.io/arch": name,
      "fairlead.dev/proxy": name,
    },
    annotations: { "k8s.ovn.org/node-subnets": NODE_SUBNETS },
  }),
  spec: fields({
    podCIDR: cidr,
    podCIDRs: listOf(cidr),
    unschedulable: flag,
    taints: listOf(
      fields({
        key: oneOf(
          "ToBeDeletedByClusterAutoscaler",
          "node.kubernetes.io/not-ready",
          "node.kubernetes.io/unreachable",
          "node.kubernetes.io/unschedulable",
          "node-role.kubernetes.io/control-plane",
        ),
        effect: oneOf("NoSchedule", "PreferNoSchedule", "NoExecute"),
      }),
    ),
  }),
  status: fields({
    addresses: listOf(
      fields({
        type: oneOf("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"),
        address: either(address, name),
      }),
    ),
    conditions: listOf(fields({ type: oneOf(...TYPES), status: oneOf("True", "False", "Unknown") })),
    nodeInfo: fields({
      architecture: name,
      operatingSystem: name,
      kubeletVersion: RELEASE,
      kernelVersion: text(/^\d+\.\d+[a-z0-9.+_-]{0,60}$/),
      containerRuntimeVersion: text(/^[a-z-]{1,20}:\/\/v?\d[a-z0-9.+-]{0,40}$/),
    }),
  }),
});

const CALICO_POOL = object({
  spec: fields({ cidr, disabled: flag, allowedUses: listOf(oneOf("Workload", "Tunnel", "LoadBalancer")) }),
});
const CILIUM_POOL = fields({ cidrs: listOf(either(cidr, fields({ cidr }))) });

/** Of each resource that CIDRs are learned from, what its source reads. */
const BY_RESOURCE: ReadonlyMap<string, Keep> = new Map([
  ["ippools.crd.projectcalico.org", CALICO_POOL],
  ["ippools.projectcalico.org", CALICO_POOL],
  [
    "ippools.crd.antrea.io",
    object({ spec: fields({ ipRanges: listOf(fields({ cidr, start: address, end: address })) }) }),
  ],
  [
    "ciliumnodes.cilium.io",
    object({
      spec: fields({
        ipam: fields({
          podCIDRs: listOf(cidr),
          pools: fields({ allocated: listOf(fields({ pool: name, cidrs: listOf(cidr) })) }),
        }),
      }),
    }),
  ],
  ["ciliumpodippools.cilium.io", object({ spec: fields({ ipv4: CILIUM_POOL, ipv6: CILIUM_POOL }) })],
  [
    "subnets.kubeovn.io",
    object({
      spec: fields({
        cidrBlock: cidrs,
        provider: name,
        vlan: either(name, oneOf("")),
        logicalGateway: flag,
        vpc: name,
      }),
    }),
  ],
  ["vpcs.kubeovn.io", object({ status: fields({ default: flag }) })],
  ["spiderippools.spiderpool.spidernet.io", object({ spec: fields({ subnet: cidr }) })],
  ["nodes.", NODE],
]);

/** What a dump keeps of the objects of a resource that networks are learned from. */
export function networkKeep({ group, version, plural }: OtherResource, networks: Networks): Keep {
  const custom = [...networks.clusterCIDRsFrom, ...networks.excludeCIDRsFrom].flatMap((one) =>
    one.source === "custom" && one.resource === [plural, version, group].filter((part) => part !== "").join(".")
      ? one.fields
      : [],
  );
  const known = plural === "configmaps" && group === "" ? CONFIG_MAP : BY_RESOURCE.get(`${plural}.${group}`);
  if (plural === "namespaces" && group === "") return namespaceKeep(networks);
  if (custom.length === 0) return known ?? object({});
  const described = atPaths(custom, cidrs);
  // Where objects are of a known resource as well, both say what is read.
  return (value) => merged((known ?? object({}))(value), described(value));
}

function object(of: Readonly<Record<string, Keep>>): Keep {
  return fields({ ...KIND, metadata: metadata(), ...of });
}

function namespaceKeep({ serviceRules }: Networks): Keep {
  const labels = serviceRules.flatMap((rule) =>
    // OVN-Kubernetes' label has no value.
    "namespaceLabel" in rule ? [[rule.namespaceLabel, either(name, oneOf(""))] as const] : [],
  );
  return fields({ ...KIND, metadata: metadata({ labels: Object.fromEntries(labels) }) });
}

function merged(first: unknown, second: unknown): unknown {
  if (!isPlain(first) || !isPlain(second)) return second ?? first;
  const both = Object.entries(second).map(([key, value]) => [key, merged(first[key], value)] as const);
  return { ...first, ...Object.fromEntries(both) };
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Labels and annotations that a kind keeps, with the form of each value. */
interface Marks {
  readonly labels?: Readonly<Record<string, Keep>>;
  readonly annotations?: Readonly<Record<string, Keep>>;
}

/** Everything else in metadata is left out: `last-applied-configuration` holds a whole object, with its secrets. */
function metadata({ labels = {}, annotations = {} }: Marks = {}): Keep {
  return fields({
    name,
    namespace: name,
    creationTimestamp: time,
    deletionTimestamp: time,
    labels: fields(labels),
    annotations: fields(annotations),
  });
}

/**
 * Keeps what stands at these paths and fits, of objects, lists on the way, and JSON in texts.
 *
 * @param paths as `spec.subnet`: names between dots, `\.` for a dot in a name, `[]` behind one for a list
 */
function atPaths(paths: readonly string[], leaf: Keep): Keep {
  return keepAt(paths.map(namesIn), leaf);
}

function namesIn(path: string): readonly string[] {
  return path.split(/(?<!\\)\./).map((name) => name.replace(/\[\]$/, "").replaceAll("\\.", "."));
}

function keepAt(paths: readonly (readonly string[])[], leaf: Keep): Keep {
  const keep: Keep = (value) => {
    if (Array.isArray(value)) return value.map(keep).filter((one) => one !== undefined);
    if (paths.some((names) => names.length === 0)) return leaf(value);
    if (typeof value === "string") return parsedText(value, keep);
    return isObject(value) ? keptFields(value, paths, leaf) : undefined;
  };
  return keep;
}

function keptFields(value: Readonly<Record<string, unknown>>, paths: readonly (readonly string[])[], leaf: Keep) {
  const names = new Set(paths.flatMap(([first]) => first ?? []));
  const kept = Array.from(names).flatMap((name) => {
    if (!Object.hasOwn(value, name)) return [];
    const below = paths.filter(([first]) => first === name).map(([, ...rest]) => rest);
    const inner = keepAt(below, leaf)(fieldsOf(value)[name]);
    return inner === undefined ? [] : [[name, inner] as const];
  });
  return Object.fromEntries(kept);
}

function parsedText(text: string, keep: Keep): string | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null) return undefined;
    return JSON.stringify(keep(parsed));
  } catch {
    return undefined;
  }
}

/** A YAML text, of which as much is kept; it is written anew, as JSON, which is YAML. */
function yamlText(keep: Keep): Keep {
  return (value) => {
    if (typeof value !== "string") return undefined;
    try {
      const kept = keep(parse(value, { maxAliasCount: 0, schema: "core" }));
      return kept === undefined ? undefined : JSON.stringify(kept);
    } catch {
      return undefined;
    }
  };
}
