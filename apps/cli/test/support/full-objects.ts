import type { AgentConfig } from "@fairlead/config";
import type { OtherResource } from "@fairlead/watch";
import { proxySettings } from "../../src/inputs/agent.ts";

type Settings = Pick<AgentConfig["multiCNI"], "clusterCIDRsFrom" | "excludeCIDRsFrom" | "serviceRules">;

const SETTINGS: Settings = {
  clusterCIDRsFrom: [],
  excludeCIDRsFrom: [
    { source: "custom", resource: "pools.v1.example.com", fields: ["spec.subnet", "spec.all[].cidr"] },
  ],
  serviceRules: [
    { namespaceLabel: "example.com/network", in: ["blue"], ownership: "foreign" },
    { namespaceLabel: "k8s.ovn.org/primary-user-defined-network", ownership: "foreign" },
  ],
};

function resource(group: string, version: string, plural: string, kind: string, namespaced = false): OtherResource {
  return { group, version, plural, kind, namespaced };
}

function network(of: OtherResource): { readonly resource: OtherResource; readonly settings: Settings } {
  return { resource: of, settings: SETTINGS };
}

export const CONFIG_MAP = network(resource("", "v1", "configmaps", "ConfigMap", true));

export const NETWORKS = {
  Node: network(resource("", "v1", "nodes", "Node")),
  Namespace: network(resource("", "v1", "namespaces", "Namespace")),
  ConfigMap: CONFIG_MAP,
  IPPool: network(resource("crd.projectcalico.org", "v1", "ippools", "IPPool")),
  AntreaIPPool: network(resource("crd.antrea.io", "v1beta1", "ippools", "IPPool")),
  CiliumNode: network(resource("cilium.io", "v2", "ciliumnodes", "CiliumNode")),
  CiliumPodIPPool: network(resource("cilium.io", "v2", "ciliumpodippools", "CiliumPodIPPool")),
  Subnet: network(resource("kubeovn.io", "v1", "subnets", "Subnet")),
  Vpc: network(resource("kubeovn.io", "v1", "vpcs", "Vpc")),
  SpiderIPPool: network(resource("spiderpool.spidernet.io", "v2beta1", "spiderippools", "SpiderIPPool")),
  pools: network(resource("example.com", "v1", "pools", "pools")),
} as const;

const TIME = "2026-01-31T12:00:00Z";
const metadata = { name: "web", creationTimestamp: TIME, labels: {}, annotations: {} };
const kindOf = (apiVersion: string, kind: string) => ({ apiVersion, kind, metadata });

const GIVEN = {
  ...{ apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration", mode: "nftables" },
  ...{
    clusterCIDR: "10.144.0.0/16,fd44::/48",
    hostnameOverride: "node-a",
    nodePortAddresses: ["primary", "10.0.0.0/8"],
  },
  ...{ featureGates: { WatchListClient: true }, ipvs: { scheduler: "rr", excludeCIDRs: ["10.9.0.0/16"] } },
};
/** Every field, as a proxy serves its own; where its credentials are is not kept. */
const { clientConnection: _, ...kubeProxy } = proxySettings({
  from: "a test",
  flags: [],
  text: JSON.stringify(GIVEN),
}).kubeProxyConfiguration;

/** Of each kind an object with every field that is kept. */
export const FULL: Readonly<Record<string, object>> = {
  Service: {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: "web",
      namespace: "shop",
      creationTimestamp: TIME,
      deletionTimestamp: TIME,
      labels: {
        "service.kubernetes.io/service-proxy-name": "edge",
        "k8s-app": "kube-dns",
      },
      ownerReferences: [{ apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", name: "gw" }],
      annotations: {
        "ovn.kubernetes.io/vpc": "blue",
        "fairlead.dev/ownership": "ours",
        "fairlead.dev/fast-path": "off",
        "fairlead.dev/ipvs-scheduler": "mh",
        "fairlead.dev/balance": "source-hash",
        "fairlead.dev/local-port": "http=8080,metrics=9090",
        "fairlead.dev/node-port-addresses": "192.0.2.0/24, 2001:db8::/64",
        "fairlead.dev/node-port-source-ranges": "192.0.2.0/24, 2001:db8::/64",
        "fairlead.dev/no-local-endpoint": "reject",
        "fairlead.dev/load-balancer-ip-mode": "VIP",
        "fairlead.dev/gateway-routes": "http=shop/db,dns=infra/dns.v1",
      },
    },
    spec: {
      type: "LoadBalancer",
      clusterIP: "10.96.0.10",
      clusterIPs: ["10.96.0.10", "fd96::10"],
      ipFamilies: ["IPv4", "IPv6"],
      ipFamilyPolicy: "RequireDualStack",
      ports: [{ name: "http", protocol: "TCP", port: 80, nodePort: 30080, targetPort: 8080 }],
      externalIPs: ["203.0.113.7"],
      loadBalancerIP: "203.0.113.9",
      loadBalancerSourceRanges: ["198.51.100.0/24"],
      internalTrafficPolicy: "Cluster",
      externalTrafficPolicy: "Local",
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
      trafficDistribution: "PreferSameZone",
      healthCheckNodePort: 32000,
      publishNotReadyAddresses: false,
    },
    status: { loadBalancer: { ingress: [{ ip: "203.0.113.9", ipMode: "VIP", hostname: "lb.example.com" }] } },
  },
  EndpointSlice: {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: "web-1",
      namespace: "shop",
      labels: {
        "kubernetes.io/service-name": "web",
        "k8s.ovn.org/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
      },
      annotations: {
        "endpoints.kubernetes.io/last-change-trigger-time": TIME,
        "k8s.ovn.org/endpointslice-network": "blue",
        "k8s.ovn.org/source-endpointslice": "web-1",
        "fairlead.dev/weight": "9",
        "fairlead.dev/weight-refused": "false",
      },
    },
    addressType: "IPv4",
    ports: [{ name: "http", protocol: "TCP", port: 8080 }],
    endpoints: [
      {
        addresses: ["10.144.1.5"],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: "node-a",
        zone: "east",
        hints: { forZones: [{ name: "east" }], forNodes: [{ name: "node-a" }] },
      },
    ],
  },
  ServiceCIDR: { ...kindOf("networking.k8s.io/v1", "ServiceCIDR"), spec: { cidrs: ["10.96.0.0/12"] } },
  Node: {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "node-a",
      labels: {
        "topology.kubernetes.io/zone": "east",
        "kubernetes.io/hostname": "node-a",
        "fairlead.dev/proxy": "fairlead",
      },
      annotations: { "k8s.ovn.org/node-subnets": '{"default":["10.130.0.0/23"]}' },
    },
    spec: {
      podCIDR: "10.144.1.0/24",
      podCIDRs: ["10.144.1.0/24"],
      unschedulable: true,
      taints: [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }],
    },
    status: {
      addresses: [
        { type: "InternalIP", address: "10.201.0.10" },
        { type: "Hostname", address: "node-a" },
      ],
      conditions: [{ type: "Ready", status: "True" }],
      nodeInfo: {
        architecture: "amd64",
        operatingSystem: "linux",
        kubeletVersion: "v1.37.1",
        kernelVersion: "6.12.48+deb13-amd64",
        containerRuntimeVersion: "containerd://2.1.3",
      },
    },
  },
  Namespace: {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name: "shop",
      labels: { "example.com/network": "blue", "k8s.ovn.org/primary-user-defined-network": "" },
      annotations: {},
    },
  },
  ConfigMap: {
    ...kindOf("v1", "ConfigMap"),
    data: {
      "net-conf.json": '{"Network":"10.244.0.0/16","IPv6Network":"fd44::/48"}',
      accepted: '[{"cidr":"10.9.0.0/16","source":"nodes"}]',
      forgotten: `[{"cidr":"10.9.0.0/16","until":"${TIME}"}]`,
      unprotected: '["default/kubernetes"]',
    },
  },
  IPPool: {
    ...kindOf("crd.projectcalico.org/v1", "IPPool"),
    spec: { cidr: "10.144.0.0/16", disabled: false, allowedUses: ["Workload"] },
  },
  AntreaIPPool: {
    ...kindOf("crd.antrea.io/v1beta1", "IPPool"),
    spec: { ipRanges: [{ cidr: "10.3.0.0/24" }, { start: "10.4.0.1", end: "10.4.0.9" }] },
  },
  CiliumNode: {
    ...kindOf("cilium.io/v2", "CiliumNode"),
    spec: { ipam: { podCIDRs: ["10.1.0.0/24"], pools: { allocated: [{ pool: "default", cidrs: ["10.2.0.0/24"] }] } } },
  },
  CiliumPodIPPool: {
    ...kindOf("cilium.io/v2", "CiliumPodIPPool"),
    spec: { ipv4: { cidrs: ["10.2.0.0/16", { cidr: "10.5.0.0/16" }] }, ipv6: { cidrs: ["fd02::/48"] } },
  },
  Subnet: {
    ...kindOf("kubeovn.io/v1", "Subnet"),
    spec: { cidrBlock: "10.16.0.0/16,fd00::/64", provider: "ovn", vlan: "", logicalGateway: true, vpc: "ovn-cluster" },
  },
  Vpc: { ...kindOf("kubeovn.io/v1", "Vpc"), status: { default: true } },
  SpiderIPPool: { ...kindOf("spiderpool.spidernet.io/v2beta1", "SpiderIPPool"), spec: { subnet: "10.6.0.0/16" } },
  pools: { ...kindOf("example.com/v1", "pools"), spec: { subnet: "10.7.0.0/16", all: [{ cidr: "10.8.0.0/16" }] } },
  KubeProxyConfiguration: kubeProxy,
  FairleadConfiguration: {
    apiVersion: "fairlead.dev/v1alpha1",
    kind: "FairleadConfiguration",
    multiCNI: {
      excludeClusterCIDRs: ["10.244.0.0/16"],
      excludeCIDRsFrom: [{ source: "kube-ovn-subnets", vpcs: ["ovn-cluster"], within: ["10.0.0.0/8"] }],
      clusterCIDRsFrom: [{ source: "custom", resource: "pools.v1.example.com", fields: ["spec.subnet"] }],
      cidrChanges: { debounce: "1s", removalDelay: "1m", maxForeignPercent: 50 },
      mixedServices: "skip",
      excludedFrontends: "all",
      ownershipAnnotation: true,
      serviceRules: [
        {
          namespaceLabel: "example.com/network",
          in: ["blue", ""],
          ownership: "foreign",
          excludedFrontends: "cluster-ip",
        },
        { annotation: "ovn.kubernetes.io/vpc", notIn: ["red", { defaultVPC: true }], ownership: "foreign" },
      ],
      protectedServices: ["shop/web"],
      masqueradeToExcluded: true,
      consentNamespace: "kube-system",
    },
    serviceProxyName: "edge",
    serviceNetwork: true,
    resetStaleTCP: true,
    replyVia: [{ interface: "eth1", table: 300 }],
    replyRouting: { markMask: 12288 },
    nftables: { fastPath: { devices: ["cali*"] } },
  },
};

/** What secrets look like: a JWT, a key, a bootstrap token, a word. */
export const SECRETS: readonly string[] = [
  "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl",
  "AKIAIOSFODNN7EXAMPLE_wJalrXUtnFEMI",
  "Hunter2_Passw0rd!",
];

/**
 * The value once for each place with the secret there: in the place of each text, number and flag, as another field of
 * each object, and as another item of each list.
 */
export function* planted(value: unknown, secret: string): Generator<unknown> {
  if (Array.isArray(value)) {
    yield [...value, secret];
    for (const [at, item] of value.entries()) for (const one of planted(item, secret)) yield value.with(at, one);
    return;
  }
  if (typeof value !== "object" || value === null) {
    yield secret;
    yield { data: secret };
    return;
  }
  yield { ...value, token: secret };
  yield { ...value, [secret]: "x" };
  for (const [name, inner] of Object.entries(value)) {
    for (const one of planted(inner, secret)) yield { ...value, [name]: one };
  }
}
