/** Which fields of the cluster's objects an archive keeps. */

import { GATEWAY_ROUTES } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { OtherResource } from "@fairlead/watch";
import { cidrs, fields, type Keep, type KeptFields, plain, text, yamlText } from "./keep.ts";

/** Everything else in metadata is left out: `last-applied-configuration` holds a whole object, with its secrets. */
const OBJECT: KeptFields = {
  "": ["apiVersion", "kind"],
  metadata: ["name", "namespace", "creationTimestamp", "deletionTimestamp"],
  "metadata.labels": [],
  "metadata.annotations": [],
};

const ROUTES = /^(?:(?:^|,)[a-z0-9-]{1,63}=[a-z0-9-]{1,63}\/[a-z0-9.-]{1,253}){1,64}$/;

const SERVICE: KeptFields = {
  "metadata.labels": ["service.kubernetes.io/service-proxy-name", "k8s-app"],
  "metadata.ownerReferences": ["apiVersion", "kind", "name"],
  "metadata.annotations": [
    "ovn.kubernetes.io/vpc",
    ["fairlead.dev/node-port-addresses", cidrs],
    ["fairlead.dev/node-port-source-ranges", cidrs],
    "fairlead.dev/no-local-endpoint",
    "fairlead.dev/load-balancer-ip-mode",
    "fairlead.dev/ownership",
    "fairlead.dev/ipvs-scheduler",
    "fairlead.dev/fast-path",
    "fairlead.dev/balance",
    "fairlead.dev/local-port",
    [GATEWAY_ROUTES, text(ROUTES)],
  ],
  spec: [
    "type",
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ipFamilyPolicy",
    "externalIPs",
    "loadBalancerIP",
    "loadBalancerSourceRanges",
    "internalTrafficPolicy",
    "externalTrafficPolicy",
    "sessionAffinity",
    "trafficDistribution",
    "healthCheckNodePort",
    "publishNotReadyAddresses",
  ],
  "spec.ports": ["name", "protocol", "port", "nodePort", "targetPort"],
  "spec.sessionAffinityConfig.clientIP": ["timeoutSeconds"],
  "status.loadBalancer.ingress": ["ip", "ipMode", "hostname"],
};

/** @param annotations that rules of the configuration ask for, alongside Fairlead's own */
export function serviceKeep(annotations: Iterable<string>): Keep {
  return fields(OBJECT, SERVICE, { "metadata.annotations": [...annotations] });
}

export const ENDPOINT_SLICE: Keep = fields(OBJECT, {
  "metadata.labels": [
    "kubernetes.io/service-name",
    "k8s.ovn.org/service-name",
    "endpointslice.kubernetes.io/managed-by",
  ],
  "metadata.annotations": [
    "endpoints.kubernetes.io/last-change-trigger-time",
    "k8s.ovn.org/endpointslice-network",
    "k8s.ovn.org/source-endpointslice",
    "fairlead.dev/weight",
    "fairlead.dev/weight-refused",
  ],
  "": ["addressType"],
  ports: ["name", "protocol", "port"],
  endpoints: ["addresses", "nodeName", "zone"],
  "endpoints.conditions": ["ready", "serving", "terminating"],
  "endpoints.hints.forZones": ["name"],
  "endpoints.hints.forNodes": ["name"],
});

export const SERVICE_CIDR: Keep = fields(OBJECT, { spec: ["cidrs"] });

type Networks = Pick<AgentConfig["multiCNI"], "clusterCIDRsFrom" | "excludeCIDRsFrom" | "serviceRules">;

const NODE: KeptFields = {
  "metadata.labels": [
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "fairlead.dev/proxy",
  ],
  // Of OVN-Kubernetes: CIDRs by network, one text in old versions.
  "metadata.annotations.k8s\\.ovn\\.org/node-subnets": [["*", cidrs]],
  spec: ["podCIDR", "podCIDRs", "unschedulable"],
  "spec.taints": ["key", "effect"],
  "status.addresses": ["type", "address"],
  "status.conditions": ["type", "status"],
  "status.nodeInfo": ["architecture", "operatingSystem", "kubeletVersion", "kernelVersion", "containerRuntimeVersion"],
};

const CALICO_POOL: KeptFields = { spec: ["cidr", "disabled", "allowedUses"] };

/** Texts, or objects with one. */
const POOL_CIDRS: Keep = (value) =>
  Array.isArray(value) ? value.flatMap((one) => cidrs(one) ?? POOL_CIDR(one) ?? []) : undefined;
const POOL_CIDR = fields({ "": ["cidr"] });

/** Of each resource that CIDRs are learned from, what its source reads; of ConfigMaps the two that agents read. */
const BY_RESOURCE: Readonly<Record<string, KeptFields>> = {
  "nodes.": NODE,
  "configmaps.": {
    "data.net-conf\\.json": ["Network", "IPv6Network"],
    "data.accepted": ["cidr", "source", "until"],
    "data.forgotten": ["cidr", "source", "until"],
    data: [["unprotected", yamlText(plain)]],
  },
  "ippools.crd.projectcalico.org": CALICO_POOL,
  "ippools.projectcalico.org": CALICO_POOL,
  "ippools.crd.antrea.io": { "spec.ipRanges": ["cidr", "start", "end"] },
  "ciliumnodes.cilium.io": { "spec.ipam": ["podCIDRs"], "spec.ipam.pools.allocated": ["pool", "cidrs"] },
  "ciliumpodippools.cilium.io": { "spec.ipv4": [["cidrs", POOL_CIDRS]], "spec.ipv6": [["cidrs", POOL_CIDRS]] },
  "subnets.kubeovn.io": { spec: ["cidrBlock", "provider", "vlan", "logicalGateway", "vpc"] },
  "vpcs.kubeovn.io": { status: ["default"] },
  "spiderippools.spiderpool.spidernet.io": { spec: ["subnet"] },
};

/** What a dump keeps of the objects of a resource that networks are learned from. */
export function networkKeep({ group, version, plural }: OtherResource, networks: Networks): Keep {
  const resource = [plural, version, group].filter((part) => part !== "").join(".");
  const sources = [...networks.clusterCIDRsFrom, ...networks.excludeCIDRsFrom];
  const described = sources.flatMap((one) => {
    return one.source === "custom" && one.resource === resource ? one.fields.map(asKept) : [];
  });
  const known = plural === "namespaces" && group === "" ? namespaceFields(networks) : BY_RESOURCE[`${plural}.${group}`];
  return fields(OBJECT, known ?? {}, ...described);
}

function namespaceFields({ serviceRules }: Networks): KeptFields {
  const labels = serviceRules.flatMap((rule) => ("namespaceLabel" in rule ? rule.namespaceLabel : []));
  return { "metadata.labels": labels };
}

/** @param path of a field, as `spec.subnet`, `spec.all[].cidr` */
function asKept(path: string): KeptFields {
  const [, above = "", name = ""] = /^(?:(.*)(?<!\\)\.)?((?:[^.\\]|\\.)*)$/.exec(path) ?? [];
  return { [above]: [[name.replace(/\[\]$/, "").replaceAll("\\.", "."), cidrs]] };
}
