import { withoutSecrets } from "./free-text.ts";
import {
  address,
  cidr,
  cidrs,
  duration,
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

const ADDRESS_PORT = text(/^(?:\[[0-9a-f:.]+\]|[0-9.]*|):?\d{0,5}$/);
const MODE = oneOf("", "iptables", "ipvs", "nftables", "userspace");
const PERIODS = { syncPeriod: duration, minSyncPeriod: duration } as const;
const MASQUERADE = { masqueradeAll: flag, masqueradeBit: number } as const;

/** KubeProxyConfiguration: everything but paths, names of files and logging. */
export const KUBE_PROXY_CONFIGURATION = fields({
  apiVersion: oneOf("kubeproxy.config.k8s.io/v1alpha1"),
  kind: oneOf("KubeProxyConfiguration"),
  mode: MODE,
  clusterCIDR: cidrs,
  bindAddress: address,
  bindAddressHardFail: flag,
  healthzBindAddress: ADDRESS_PORT,
  metricsBindAddress: ADDRESS_PORT,
  hostnameOverride: either(name, oneOf("")),
  detectLocalMode: oneOf("", "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"),
  detectLocal: fields({ bridgeInterface: text(/^[\w.-]{0,15}$/), interfaceNamePrefix: text(/^[\w.-]{0,15}$/) }),
  nodePortAddresses: listOf(either(cidr, oneOf("primary", "localhost", "all"))),
  featureGates: recordOf(/^[A-Z][A-Za-z0-9]{2,60}$/, flag),
  configSyncPeriod: duration,
  oomScoreAdj: number,
  iptables: fields({ ...MASQUERADE, ...PERIODS, localhostNodePorts: flag }),
  nftables: fields({ ...MASQUERADE, ...PERIODS }),
  ipvs: fields({
    ...PERIODS,
    scheduler: text(/^[a-z]{0,6}$/),
    excludeCIDRs: listOf(cidr),
    strictARP: flag,
    tcpTimeout: duration,
    tcpFinTimeout: duration,
    udpTimeout: duration,
  }),
  conntrack: fields({
    maxPerCore: number,
    min: number,
    tcpBeLiberal: flag,
    tcpEstablishedTimeout: duration,
    tcpCloseWaitTimeout: duration,
    udpTimeout: duration,
    udpStreamTimeout: duration,
  }),
});

const PATH = text(/^[a-z][A-Za-z0-9_.[\]\\/-]{0,120}$/);
const FIELD: Keep = (value) => (typeof value === "string" && withoutSecrets(value) === value ? PATH(value) : undefined);
const NAMED = /^[a-z0-9][a-z0-9./-]{0,252}$/;
const SOURCE = fields({
  source: name,
  resource: name,
  fields: listOf(FIELD),
  within: listOf(cidr),
  vpcs: listOf(name),
  namespace: name,
  name,
});
const VALUE = either(either(name, oneOf("")), fields({ defaultVPC: flag }));
const RULE = fields({
  annotation: text(NAMED),
  namespaceLabel: text(NAMED),
  in: listOf(VALUE),
  notIn: listOf(VALUE),
  ownership: oneOf("ours", "foreign"),
  excludedFrontends: oneOf("all", "cluster-ip", "excluded-clients"),
});

/** FairleadConfiguration, as far as it decides what is programmed. */
export const AGENT_CONFIGURATION = fields({
  apiVersion: oneOf("fairlead.dev/v1alpha1"),
  kind: oneOf("FairleadConfiguration"),
  multiCNI: fields({
    excludeClusterCIDRs: listOf(cidr),
    excludeCIDRsFrom: listOf(SOURCE),
    clusterCIDRsFrom: listOf(SOURCE),
    cidrChanges: fields({ debounce: duration, removalDelay: duration, maxForeignPercent: number }),
    mixedServices: oneOf("own-endpoints", "skip", "all"),
    excludedFrontends: oneOf("all", "cluster-ip", "excluded-clients"),
    ownershipAnnotation: flag,
    serviceRules: listOf(RULE),
    protectedServices: listOf(text(NAMED)),
    consentNamespace: name,
  }),
});

const WHY = text(/^[^"]{0,500}$/);
const OWNERSHIP = fields({
  services: listOf(
    fields({
      service: text(NAMED),
      ipFamily: oneOf("IPv4", "IPv6"),
      ownership: oneOf("ours", "foreign", "mixed"),
      why: (value) => WHY(typeof value === "string" ? withoutSecrets(value.replaceAll(/"[^"]*"/g, "…")) : value),
      decidingCIDRs: listOf(cidr),
      ownEndpoints: number,
      excludedEndpoints: number,
      frontends: name,
    }),
  ),
  networks: fields({
    sources: listOf(fields({ source: name, side: name, state: name })),
    cidrs: listOf(
      fields({
        cidr,
        side: name,
        source: name,
        stage: name,
        since: time,
        objects: listOf(text(/^[A-Za-z0-9./-]{1,300}$/)),
      }),
    ),
    conflicts: listOf(fields({ cidr, with: cidr })),
    heldBack: number,
  }),
});

/** Metrics of proxies and of their process. */
const OF_PROXY = /^(?:# (?:HELP|TYPE) )?(?:fairlead|kubeproxy|kubernetes|rest_client|process|nodejs|go)_/;

/** An agent's pages, by their paths, as far as they are kept. */
const PAGES: Readonly<Record<string, (page: string) => string | undefined>> = {
  "/proxyMode": (page) => (MODE(page.trim()) === undefined ? undefined : page.trim()),
  "/configz": jsonPage(
    fields({
      "kubeproxy.config.k8s.io": KUBE_PROXY_CONFIGURATION,
      "fairlead.dev": AGENT_CONFIGURATION,
      commandLine: fields({ "userspace-only": oneOf("true", "false") }),
    }),
  ),
  "/ownership": jsonPage(OWNERSHIP),
  "/metrics": (page) =>
    `${page
      .split("\n")
      .filter((line) => OF_PROXY.test(line))
      .map(withoutSecrets)
      .join("\n")}\n`,
  "/livez": withoutSecrets,
};

export const PAGE_PATHS = Object.keys(PAGES);

/** @returns undefined: nothing of it is kept */
export function keptPage(path: string, page: string): string | undefined {
  return PAGES[path]?.(page);
}

function jsonPage(keep: ReturnType<typeof fields>) {
  const kept = jsonText(keep);
  return (page: string): string | undefined => {
    const found = kept(page);
    return typeof found === "string" ? found : undefined;
  };
}
