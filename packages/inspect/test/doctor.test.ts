/** The doctor's table: what makes each of its lines, and that nothing else does. */

import { describe, expect, test } from "vitest";
import { ADVICE_NAMES, diagnose, type NodeFacts } from "../src/index.ts";

const IPVS: NodeFacts["needs"] = {
  iptables: ["nat", "filter"],
  kernelParts: [
    { name: "ipvs", remedy: "load ip_vs" },
    { name: "ipset", remedy: "load ip_set" },
  ],
  sysctls: [{ key: "net/ipv4/vs/conntrack", value: "1", why: "virtual servers need it" }],
};

const NFTABLES: NodeFacts["needs"] = { iptables: [], kernelParts: [], sysctls: [], nftTables: ["kube-proxy"] };

type Rules = NodeFacts["rules"][number];
const rules = (variant: Rules["variant"], proxy: number, others: number, more: Partial<Rules> = {}): Rules => {
  return { variant, readable: true, hinted: false, proxy, others, dropping: [], ...more };
};

const HEALTHY: NodeFacts = {
  needs: { iptables: ["nat", "filter"], kernelParts: [], sysctls: [] },
  variant: "nft",
  mayReadRules: true,
  rules: [rules("nft", 40, 3, { hinted: true }), rules("legacy", 0, 0)],
  others: { kubeOVNRejects: [], servesBySets: false, ciliumChains: [], pinnedMaps: [] },
  nftTables: [],
  sysctls: { "net/ipv4/ip_forward": "1", "net/ipv4/vs/conntrack": "1" },
  kernel: { "connection tracking": true, ipvs: true, ipset: true },
  proxies: [{ pid: 7, name: "fairlead-proxy" }],
  allProcesses: true,
  routes: ["10.144.1.5/32", "10.144.2.0/24"],
  cidrs: [
    { cidr: "10.144.0.0/16", use: "pods" },
    { cidr: "10.244.0.0/16", use: "excluded pods" },
    { cidr: "10.96.0.0/12", use: "services" },
    { cidr: "10.201.0.10/32", use: "node" },
  ],
  api: answers(),
};

const UNDECIDED = [rules("nft", 40, 0), rules("legacy", 12, 0)];

/** An API server's answers, of a cluster without Calico and Cilium if nothing else is said. */
function answers(more: Partial<Extract<NodeFacts["api"], { kind: "answers" }>> = {}): NodeFacts["api"] {
  const absent = { kind: "absent" } as const;
  return { kind: "answers", server: "https://10.96.0.1", denied: [], calico: absent, cilium: absent, ...more };
}

const REJECT =
  "-A INPUT -p tcp -m mark ! --mark 0x4000/0x4000 -m set --match-set ovn40services dst -m conntrack --ctstate NEW -j REJECT --reject-with icmp-port-unreachable";

const subnet = (name: string) => ({ id: "kube-ovn-subnets", objects: [`Subnet/${name}`] });

const fastPath = (facts: Partial<NonNullable<NodeFacts["fastPath"]>>): Facts => ({
  fastPath: { flowtables: true, test: { kind: "passed" }, devices: ["cali1"], refused: [], others: [], ...facts },
});

type Notice = NonNullable<NodeFacts["notices"]>[number];
const notice = (name: string, effect: NonNullable<Notice["effect"]>): Notice => {
  const field = { field: "spec.loadBalancerSourceRanges", value: "", reason: "is odd" };
  return { kind: "Service", namespace: "shop", name, ...field, effect };
};

type Networks = NonNullable<NodeFacts["networks"]>;
const networks = (agents: Networks["agents"], called: Partial<Networks["called"]> = {}): Facts => ({
  networks: { called: { unanswered: [], unlisted: [], ...called }, agents },
});
const agent = (node: string, ownership: "ours" | "foreign", endpoints = 1) => {
  const [ownEndpoints, excludedEndpoints] = ownership === "ours" ? [endpoints, 0] : [0, endpoints];
  const row = { service: "default/web", ipFamily: "IPv4", ownership, ownEndpoints, excludedEndpoints } as const;
  return { node, services: [row], cidrs: [] };
};
const keeping = (node: string) => {
  const kept = { cidr: "10.17.0.0/16", source: "kube-ovn-subnets", kept: true } as const;
  return { node, services: [], cidrs: [kept] };
};

const inVPC = (service: string, isServed: boolean) =>
  ({ service, network: { kind: "VPC", name: "blue" }, isServed }) as const;
const inUDN = {
  service: "nad-l3/web",
  network: { kind: "user-defined network", name: "l3-network" },
  isServed: true,
} as const;
const SUBNETS = [
  { name: "blue-net", vpc: "blue", cidr: "10.0.1.0/24" },
  { name: "red-net", vpc: "red", cidr: "10.0.1.0/24" },
];

type Facts = Partial<NodeFacts>;

/** By what differs from a healthy node: `state check: found → advice` of each line that is not good. */
const CASES: Readonly<Record<string, readonly [facts: Facts, ...lines: readonly string[]]>> = {
  "a healthy node": [{}],
  "a healthy node in ipvs mode": [{ needs: IPVS }],
  "a mode that distinguishes excluded clients": [{ distinguishesClients: true }],
  "a mode that does not": [
    { needs: IPVS, distinguishesClients: false },
    "warning excluded clients: this mode cannot distinguish clients: ClusterIPs of other networks are left to them for all clients → excluded-clients",
  ],
  "no iptables": [
    { variant: undefined as never, rules: [] },
    "bad iptables: not found → install-iptables",
    "unknown policies: may not be read → look-as-root",
  ],
  "a healthy node in nftables mode": [{ needs: NFTABLES, nftTables: ["ip kube-proxy", "ip6 kube-proxy"] }],
  "a node without iptables in nftables mode": [
    { needs: NFTABLES, nftTables: ["ip kube-proxy"], variant: undefined as never, rules: [] },
  ],
  "no table in nftables mode": [
    { needs: NFTABLES, nftTables: ["ip mine"] },
    "warning nft tables of others: ip mine → check-tables",
    "bad nft tables of the mode: kube-proxy: not there → make-table",
  ],
  "tables that cannot be listed in nftables mode": [
    { needs: NFTABLES, nftTables: undefined },
    "unknown nft tables of others: cannot be listed → look-as-root",
    "unknown nft tables of the mode: cannot be listed → look-as-root",
  ],
  "no rights": [{ mayReadRules: false }, "bad iptables: nft, but its rules may not be read → look-as-root"],
  "a proxy's leftovers in the other variant": [
    { rules: [rules("nft", 40, 0, { hinted: true }), rules("legacy", 12, 0)] },
    "bad rules of the other variant: legacy has 12 rules of a proxy and 0 of others, alongside nft → remove-other-variant",
  ],
  "rules of a proxy in both variants, and no chain of kubelet in either": [
    { rules: UNDECIDED },
    "bad iptables: both variants have rules of a proxy → decide-variant",
    "bad rules of the other variant: legacy has 12 rules of a proxy and 0 of others, alongside nft → decide-variant",
  ],
  "the same in a mode that writes neither": [
    { rules: UNDECIDED, needs: NFTABLES, nftTables: ["ip kube-proxy"] },
    "bad rules of the other variant: legacy has 12 rules of a proxy and 0 of others, alongside nft → remove-other-variant",
  ],
  "others in the other variant": [
    { rules: [rules("nft", 40, 0, { hinted: true }), rules("legacy", 0, 5)] },
    "warning rules of the other variant: legacy has 0 rules of a proxy and 5 of others, alongside nft → one-variant",
  ],
  "a policy that drops": [
    { rules: [rules("nft", 40, 0, { hinted: true, dropping: ["FORWARD"] })] },
    "warning policies: FORWARD of filter drop what no rule accepts → let-through",
  ],
  "two hundred tables with names of two hundred characters": [
    { nftTables: Array.from({ length: 200 }, (_, at) => `ip ${String(at).padEnd(200, "x")}`) },
    `warning nft tables of others: ${[0, 1, 2, 3, 4].map((at) => `ip ${String(at).padEnd(56, "x")}…`).join(", ")}, and 195 more → check-tables`,
  ],
  "the table of replyVia, where it is configured": [
    { nftTables: ["ip fairlead_reply", "ip6 fairlead_reply"], uplinks: [{ interface: "eth1", filter: 0 }] },
  ],
  firewalld: [{ nftTables: ["inet firewalld"] }, "warning nft tables of others: inet firewalld → check-tables"],
  "what nftables mode left, alongside a proxy that says that it is in another mode": [
    { nftTables: ["ip kube-proxy"], running: { mode: "iptables", nftTables: [] } },
    "bad nft tables of others: ip kube-proxy: left by nftables mode; the proxy runs in iptables mode → delete-left-tables",
  ],
  "what nftables mode left, and no proxy": [
    { nftTables: ["ip kube-proxy"], proxies: [] },
    "bad nft tables of others: ip kube-proxy: left by nftables mode, and no proxy runs → start-proxy-first",
    "warning proxies on this node: none runs → start-agent",
  ],
  "the table of a proxy that runs in nftables mode, whatever mode was given": [
    { nftTables: ["ip kube-proxy"], running: { mode: "nftables", nftTables: ["kube-proxy"] } },
  ],
  "a table that a proxy may serve by that does not say its mode": [
    { nftTables: ["ip kube-proxy"] },
    "unknown nft tables of others: ip kube-proxy: whether a proxy in nftables mode serves by them is not known → ask-running-proxy",
  ],
  "a proxy that answers, where processes are not seen": [
    { proxies: [], allProcesses: false, running: { mode: "ipvs", nftTables: [] } },
  ],
  "rules of a proxy in the other variant only: its own image chose that one": [
    { rules: [rules("nft", 0, 3, { hinted: true }), rules("legacy", 40, 0)] },
    "warning rules of the other variant: legacy has 40 rules of a proxy and 0 of others, alongside nft → one-variant",
  ],
  "no forwarding": [{ sysctls: { "net/ipv4/ip_forward": "0" } }, "bad net.ipv4.ip_forward: 0 → sysctl"],
  "IPv6 without forwarding": [
    {
      cidrs: [
        { cidr: "fd00:144::/48", use: "pods" },
        { cidr: "fd00:96::/112", use: "services" },
        { cidr: "fd00:201::10/128", use: "node" },
      ],
      routes: ["fd00:144::/48"],
    },
    "bad net.ipv6.conf.all.forwarding: not there → sysctl",
  ],
  "a bridge past iptables": [
    { sysctls: { ...HEALTHY.sysctls, "net/bridge/bridge-nf-call-iptables": "0" } },
    "warning net.bridge.bridge-nf-call-iptables: 0 → sysctl",
  ],
  "a strict filter where answers leave by the client's interface": [
    {
      uplinks: [
        { interface: "eth1", filter: 1 },
        { interface: "eth2", filter: 2 },
      ],
    },
    "bad answers by eth1: rp_filter is 1 (strict) → rp-filter",
  ],
  "a kernel without IPVS": [
    {
      needs: IPVS,
      kernel: { "connection tracking": true, ipvs: false, ipset: false },
      sysctls: { "net/ipv4/ip_forward": "1" },
    },
    "bad ipvs: this kernel does not have it → kernel-part",
    "bad ipset: this kernel does not have it → kernel-part",
    "bad net.ipv4.vs.conntrack: not there → sysctl",
  ],
  "no connection tracking": [
    { kernel: { ...HEALTHY.kernel, "connection tracking": false } },
    "bad connection tracking: this kernel does not have it → kernel-part",
  ],
  "no proxy": [{ proxies: [] }, "warning proxies on this node: none runs → start-agent"],
  "the table of an agent with a name, which runs or may run": [
    { nftTables: ["ip fairlead-edge"], instances: [{ name: "edge", tables: ["ip fairlead-edge"], running: true }] },
  ],
  "the tables of one that does not run": [
    {
      nftTables: ["ip fairlead-edge", "ip6 fairlead-edge"],
      instances: [{ name: "edge", tables: ["ip fairlead-edge", "ip6 fairlead-edge"], running: false }],
    },
    "warning instance edge: service proxy edge has ip fairlead-edge, ip6 fairlead-edge, and does not run → instance",
  ],
  "an agent with a name alongside a first proxy in nftables mode": [
    {
      needs: { ...NFTABLES, nftTables: ["fairlead-edge"] },
      nftTables: ["ip kube-proxy", "ip fairlead-edge"],
      serviceProxyName: "edge",
    },
  ],
  "two proxies": [
    { proxies: [...HEALTHY.proxies, { pid: 9, name: "kube-proxy" }] },
    "bad proxies on this node: fairlead-proxy (process 7), kube-proxy (process 9) → one-proxy",
  ],
  "no route to pods": [
    { routes: ["10.201.0.0/24"] },
    "warning route to pods in 10.144.0.0/16: none but a default route → pod-network",
  ],
  "overlapping networks": [
    { cidrs: [...HEALTHY.cidrs, { cidr: "10.144.7.0/24", use: "services" }] },
    "bad CIDRs of services: overlapping: pods 10.144.0.0/16 and services 10.144.7.0/24 → services-overlap",
  ],
  "excluded pods over the nodes' addresses": [
    { cidrs: [...HEALTHY.cidrs, { cidr: "10.201.0.0/24", use: "excluded pods" }] },
    "bad CIDRs with nodes: overlapping: node 10.201.0.10/32 and excluded pods 10.201.0.0/24 → nodes-overlap",
  ],
  "the node's address on its pods' bridge, next to the node's own": [
    { cidrs: [...HEALTHY.cidrs, { cidr: "10.144.1.1/32", use: "node" }] },
    "warning CIDRs with nodes: overlapping: pods 10.144.0.0/16 and node 10.144.1.1/32 → pods-bridge",
  ],
  "the same, and nothing is known of services": [
    { cidrs: [{ cidr: "10.144.1.1/32", use: "node" }, ...HEALTHY.cidrs.filter(({ use }) => use !== "services")] },
    "warning CIDRs with nodes: overlapping: node 10.144.1.1/32 and pods 10.144.0.0/16 → pods-bridge",
    "unknown CIDRs: those of services are not known → give-cidrs",
  ],
  "legacy rules that iptables mode left, and the proxy runs in nftables mode": [
    {
      needs: NFTABLES,
      nftTables: ["ip kube-proxy"],
      rules: [rules("nft", 0, 3, { hinted: true }), rules("legacy", 12, 0)],
    },
    "bad rules of the other variant: legacy has 12 rules of a proxy and 0 of others, alongside nft → remove-other-variant",
  ],
  "a node whose only address is in the pods' CIDR": [
    { cidrs: [...HEALTHY.cidrs.slice(0, 3), { cidr: "10.144.1.1/32", use: "node" }] },
    "bad CIDRs with nodes: overlapping: pods 10.144.0.0/16 and node 10.144.1.1/32 → nodes-overlap",
  ],
  "an underlay that was learned": [
    { cidrs: [...HEALTHY.cidrs, { cidr: "10.201.0.0/24", use: "excluded pods", source: subnet("under") }] },
    "warning CIDRs with nodes: overlapping: node 10.201.0.10/32 and excluded pods 10.201.0.0/24 of kube-ovn-subnets (Subnet/under) → underlay",
  ],
  "one CIDR on both sides, and one within the other side's": [
    {
      routes: ["10.144.2.0/24", "10.244.7.0/24"],
      cidrs: [
        ...HEALTHY.cidrs,
        { cidr: "10.144.0.0/16", use: "excluded pods", source: subnet("same") },
        { cidr: "10.244.7.0/24", use: "pods", source: { id: "calico-ippools", objects: ["IPPool/part"] } },
      ],
    },
    "bad CIDRs on both sides: overlapping: pods 10.144.0.0/16 and excluded pods 10.144.0.0/16 of kube-ovn-subnets (Subnet/same) → one-side",
    "warning CIDRs within the other side's: overlapping: excluded pods 10.244.0.0/16 and pods 10.244.7.0/24 of calico-ippools (IPPool/part) → within-other",
  ],
  "a prefix that two sources claim, and a subnet within one of the same network": [
    {
      cidrs: [
        ...HEALTHY.cidrs,
        { cidr: "10.16.0.0/16", use: "excluded pods", source: subnet("ovn-default") },
        { cidr: "10.16.7.0/24", use: "excluded pods", source: subnet("part") },
        { cidr: "10.16.8.0/24", use: "excluded pods", source: { id: "cilium-pools", objects: ["CiliumPodIPPool/a"] } },
      ],
    },
    "warning CIDRs that two sources claim: overlapping: excluded pods 10.16.0.0/16 of kube-ovn-subnets (Subnet/ovn-default) and " +
      "excluded pods 10.16.8.0/24 of cilium-pools (CiliumPodIPPool/a) → two-sources",
  ],
  "kube-ovn's REJECT in ipvs mode": [
    { others: { ...HEALTHY.others, kubeOVNRejects: [REJECT], servesBySets: true } },
    `bad kube-ovn's REJECT of services: ${REJECT} → kube-ovn-mode`,
  ],
  "kube-ovn's REJECT for sets that ipvs mode left": [
    { others: { ...HEALTHY.others, kubeOVNRejects: [REJECT] } },
    `warning kube-ovn's REJECT of services: ${REJECT} → kube-ovn-set`,
  ],
  "Calico with BPF, which cleans up": [
    { api: answers({ calico: { kind: "found", value: { enabled: true, cleansUp: true } } }) },
    "bad Calico with BPF: FelixConfiguration default has bpfEnabled: true, and its clean-up deletes a proxy's chains and tables → calico-bpf",
  ],
  "Calico with BPF, which does not": [
    { api: answers({ calico: { kind: "found", value: { enabled: true, cleansUp: false } } }) },
    "bad Calico with BPF: FelixConfiguration default has bpfEnabled: true → calico-bpf",
  ],
  "Calico without BPF": [{ api: answers({ calico: { kind: "found", value: { enabled: false, cleansUp: true } } }) }],
  "signs of Calico's BPF": [
    {
      api: answers({ calico: { kind: "forbidden" } }),
      others: { ...HEALTHY.others, pinnedMaps: ["cali_v4_nat_fe3", "cali_v4_routes"] },
    },
    "warning Calico with BPF: its maps of services are pinned on this node: cali_v4_nat_fe3 → calico-maps",
  ],
  "a Cilium that replaces kube-proxy (true)": [
    { api: answers({ cilium: { kind: "found", value: "true" } }) },
    `bad Cilium in kube-proxy's place: ConfigMap kube-system/cilium-config has kube-proxy-replacement: "true" → cilium-replaces`,
  ],
  "a Cilium that replaces kube-proxy (strict)": [
    { api: answers({ cilium: { kind: "found", value: "strict" } }) },
    `bad Cilium in kube-proxy's place: ConfigMap kube-system/cilium-config has kube-proxy-replacement: "strict" → cilium-replaces`,
  ],
  "a Cilium that does not, with its maps": [
    {
      api: answers({ cilium: { kind: "found", value: "false" } }),
      others: { ...HEALTHY.others, pinnedMaps: ["cilium_lb4_services_v2"], ciliumChains: ["CILIUM_INPUT"] },
    },
  ],
  "Cilium's chains, and no API to ask": [
    { api: answers({ cilium: { kind: "forbidden" } }), others: { ...HEALTHY.others, ciliumChains: ["CILIUM_INPUT"] } },
    "warning Cilium in kube-proxy's place: there are its chains: CILIUM_INPUT; whether it replaces kube-proxy they do not say → cilium-look",
  ],
  "no API server": [
    { api: { kind: "unreachable", reason: "connect ECONNREFUSED 10.0.0.1:6443" } },
    "bad API server: connect ECONNREFUSED 10.0.0.1:6443 → reach-api-server",
  ],
  "too few rights": [
    { api: answers({ denied: ["list endpointslices.discovery.k8s.io"] }) },
    "bad API server: https://10.96.0.1 does not allow: list endpointslices.discovery.k8s.io → bind-role",
  ],
  "too few rights of a user who is not the agent": [
    { api: answers({ denied: ["create events.events.k8s.io"], ofOther: true }) },
    "unknown API server: https://10.96.0.1 does not allow your user what the agent needs: create events.events.k8s.io → ask-as-agent",
  ],
  "rules of either variant cannot be looked at": [
    {
      mayReadRules: false,
      rules: [rules("nft", 0, 0, { readable: false }), rules("legacy", 0, 0, { readable: false })],
    },
    "bad iptables: nft, but its rules may not be read → look-as-root",
    "unknown rules of the other variant: those of legacy may not be read → look-as-root",
    "unknown policies: may not be read → look-as-root",
  ],
  "nft's tables cannot be looked at": [
    { nftTables: undefined },
    "unknown nft tables of others: cannot be listed → look-as-root",
  ],
  "a setting cannot be looked at": [
    { sysctls: { ...HEALTHY.sysctls, "net/ipv4/ip_forward": undefined } },
    "unknown net.ipv4.ip_forward: may not be read → look-as-root",
  ],
  "a part of the kernel cannot be looked at": [
    { needs: IPVS, kernel: { ...HEALTHY.kernel, ipset: undefined } },
    "unknown ipset: may not be looked at → look-as-root",
  ],
  "processes cannot be looked at": [
    { proxies: [], allProcesses: false },
    "unknown proxies on this node: none is seen → look-in-host-processes",
  ],
  "some processes cannot be looked at": [
    { allProcesses: false },
    "unknown proxies on this node: fairlead-proxy (process 7) is seen → look-in-host-processes",
  ],
  "routes cannot be looked at": [
    { routes: undefined },
    "unknown route to pods in 10.144.0.0/16: routes cannot be listed → install-ip",
  ],
  "CIDRs cannot be looked at": [
    { cidrs: [{ cidr: "10.201.0.10/32", use: "node" }] },
    "unknown route to pods: their CIDRs are not known → give-cidrs",
    "unknown CIDRs: those of pods and services are not known; the others do not overlap: node 10.201.0.10/32 → give-cidrs",
  ],
  "other networks cannot be looked at": [
    {
      api: answers({ calico: { kind: "forbidden" }, cilium: { kind: "forbidden" } }),
      others: { kubeOVNRejects: undefined, servesBySets: undefined, ciliumChains: undefined, pinnedMaps: undefined },
    },
    "unknown kube-ovn's REJECT of services: rules may not be read → look-as-root",
    "unknown Calico with BPF: pinned BPF maps cannot be listed, and FelixConfiguration default may not be read → read-settings",
    "unknown Cilium in kube-proxy's place: pinned BPF maps cannot be listed, and ConfigMap kube-system/cilium-config may not be read → read-settings",
  ],
  "the API server cannot be looked at": [
    { api: { kind: "unasked" } },
    "unknown API server: not asked: no cluster is known → give-kubeconfig",
  ],
  "the fast path is good with devices": [fastPath({})],
  "the fast path needs a kernel with flowtables": [
    fastPath({ flowtables: false }),
    "warning fast path: disabled: this kernel has no flowtables → fast-path-kernel",
  ],
  "the fast path needs a kernel that passes the test": [
    fastPath({ test: { kind: "failed", reason: "IPv4: no answer" }, devices: "no flowtable" }),
    "warning fast path: disabled: this kernel failed its test: IPv4: no answer → fast-path-failed",
  ],
  "the fast path needs a test": [
    fastPath({ test: { kind: "none" }, devices: "no flowtable" }),
    "warning fast path: disabled: there is no result of its test since this node booted → fast-path-test",
  ],
  "the fast path may be disabled for other reasons": [
    fastPath({ devices: "no flowtable" }),
    "warning fast path: disabled: there is no flowtable → fast-path-test",
  ],
  "the fast path may not be seen": [
    fastPath({ devices: undefined }),
    "unknown fast path: the flowtable cannot be read → look-as-root",
  ],
  "the fast path needs devices": [
    fastPath({ devices: [] }),
    "warning fast path: no device is in the flowtable → fast-path-devices",
  ],
  "the fast path needs to know pods where devices are chosen": [
    fastPath({ devices: "no flowtable", auto: "devices: auto needs clusterCIDR; give it, or name the devices" }),
    "warning fast path: disabled: devices: auto needs clusterCIDR; give it, or name the devices → fast-path-devices",
  ],
  "the fast path leaves devices out": [
    fastPath({ refused: [{ device: "cni0", reason: "it is a bridge" }] }),
    "warning fast path for cni0: left out: it is a bridge → fast-path-device",
  ],
  "the fast path may share devices": [
    fastPath({
      others: [{ table: "ip calico", flowtable: "offload", devices: ["cali1", "cali2", "c3", "c4", "c5", "c6"] }],
    }),
    "warning flowtables of other programs: table ip calico has the flowtable offload on cali1, cali2, c3, c4, c5, and 1 more, too → fast-path-other",
  ],
  "an agent from which the kernel refuses nothing": [{ running: { mode: "iptables", nftTables: [], refused: 0 } }],
  "matches that the kernel lacks": [
    { running: { mode: "iptables", nftTables: [], refused: 2 } },
    "warning what the kernel refuses: objects that the running proxy leaves out: 2; all others are in place → refused-objects",
  ],
  "node-local DNS that answers": [
    { nodeLocalDNS: [{ address: "169.254.20.10", tool: "iptables-nft", devices: ["nodelocaldns"] }] },
  ],
  "node-local DNS on a node whose addresses cannot be read": [
    { nodeLocalDNS: [{ address: "169.254.20.10", tool: "iptables-nft", devices: undefined }] },
    "unknown node-local DNS: has rules for 169.254.20.10; the node's addresses cannot be read → look-as-root",
  ],
  "rules that node-local DNS left": [
    { nodeLocalDNS: [{ address: "10.96.0.10", tool: "iptables-nft", devices: [] }] },
    "bad node-local DNS: has rules for 10.96.0.10, which keep DNS there from services, and no device has the address → left-dns-rules",
  ],
  "node-local DNS at an address that ipvs serves": [
    { nodeLocalDNS: [{ address: "10.96.0.10", tool: "iptables-nft", devices: ["kube-ipvs0", "nodelocaldns"] }] },
    "warning node-local DNS: 10.96.0.10 is on kube-ipvs0 and nodelocaldns: ipvs takes packets first → shared-dns-address",
  ],
  "an uplink that cannot be seen": [
    { uplinks: [{ interface: "eth1", filter: undefined }] },
    "unknown answers by eth1: rp_filter cannot be read; the interface may be missing → look-as-root",
  ],
  "Services that ask for nothing odd": [{ notices: [] }],
  "a note on a Service, which asks for nothing": [{ notices: [notice("a", "note")] }],
  "Services that lose traffic or are open": [
    { notices: [...[0, 1, 2, 3, 4, 5, 6].map((at) => notice(`lb-${at}`, "open")), notice("a", "note")] },
    `warning what Services ask for: ${[0, 1, 2, 3, 4].map((at) => `shop/lb-${at}: spec.loadBalancerSourceRanges is odd; `).join("")}and 2 more → explain-services`,
  ],
  "nodes that agree, and each called Service is answered": [networks([agent("a", "ours"), agent("b", "ours")])],
  "no agent": [networks([]), "unknown decisions of the nodes: no agent's pod is found → reach-agents"],
  "agents that cannot be found": [
    networks({ problem: "pods may not be listed" }),
    "unknown decisions of the nodes: pods may not be listed → reach-agents",
  ],
  "an agent that does not answer": [
    networks([agent("a", "ours"), { node: "b", problem: "no" }]),
    "unknown decisions of the nodes: b: no answer; the other 1 decide the same → look-at-agents",
  ],
  "a webhook that no service here answers": [
    networks([agent("a", "ours")], {
      unanswered: [{ service: "vault/hook", objects: ["ValidatingWebhookConfiguration/vault"] }],
    }),
    "bad Services that the API server calls: left unanswered: vault/hook (ValidatingWebhookConfiguration/vault) → answer-calls",
  ],
  "webhooks that may not be read": [
    networks([agent("a", "ours")], { unlisted: ["apiservices.apiregistration.k8s.io"] }),
    "unknown Services that the API server calls: may not list apiservices.apiregistration.k8s.io → list-calls",
  ],
  "a node that decides otherwise than most": [
    networks([agent("a", "ours"), agent("b", "foreign"), agent("c", "ours")]),
    "warning decisions of the nodes: b: default/web IPv4 foreign, ours elsewhere → compare-decisions",
  ],
  "Services without endpoints, which say nothing": [networks([agent("a", "ours", 0), agent("b", "foreign", 0)])],
  "CIDRs that two nodes keep": [
    networks(["a", "b"].map(keeping)),
    "warning kept CIDRs: no object defines them anymore: 10.17.0.0/16 of kube-ovn-subnets (a; b) → kept-cidrs",
  ],
  "a user-defined network's Service that is served all the same": [
    { isolated: [inUDN] },
    "warning Services in networks that nodes do not share: served here, where no node can reach the pods: user-defined network l3-network: nad-l3/web → leave-isolated",
  ],
  "a VPC's, with its Subnets, alongside one that is left to it": [
    { isolated: [inVPC("shop/web", true), inVPC("shop/left", false)], api: answers({ subnets: SUBNETS }) },
    "warning Services in networks that nodes do not share: served here, where no node can reach the pods: VPC blue (Subnet blue-net 10.0.1.0/24): shop/web → leave-isolated",
  ],
  "Gateways, of which one has no address": [
    {
      api: answers({
        gateways: [{ gateway: "shop/db" }, { gateway: "shop/dns", waitsFor: "AddressNotAssigned: no address yet" }],
      }),
    },
    "warning Gateways: not programmed: shop/dns (AddressNotAssigned: no address yet) → program-gateways",
  ],
  "Gateways that are programmed": [{ api: answers({ gateways: [{ gateway: "shop/db" }] }) }],
};

const found = (facts: Facts) => diagnose({ ...HEALTHY, ...facts });

test.each(Object.entries(CASES))("%s", (_, [facts, ...lines]) => {
  const open = found(facts).filter(({ state }) => state !== "good");
  expect(open.map(({ state, check, found, adviceName }) => `${state} ${check}: ${found} → ${adviceName}`)).toEqual(
    lines,
  );
});

test("each advice is given in a case", () => {
  const given = new Set(Object.values(CASES).flatMap(([, ...lines]) => lines.map((line) => line.replace(/.* → /, ""))));
  expect([...given].sort()).toEqual([...ADVICE_NAMES].sort());
});

test("whatever is not good comes with what to do, and nothing else does", () => {
  const all = Object.values(CASES).flatMap(([facts]) => found(facts));
  expect(all.filter(({ state, advice = "" }) => (advice === "") !== (state === "good"))).toEqual([]);
});

describe("Services in networks that nodes do not share", () => {
  const line = (isolated: NodeFacts["isolated"], api = answers()) =>
    found({ api, ...(isolated && { isolated }) }).find(
      ({ check }) => check === "Services in networks that nodes do not share",
    );

  test("none, or none was asked for: no line", () => {
    expect([line([]), line(undefined)]).toEqual([undefined, undefined]);
  });

  test("left to their networks: good, with the VPC's Subnets", () => {
    const left = line([inVPC("shop/web", false), inVPC("shop/api", false)], answers({ subnets: SUBNETS }));
    expect(left?.found).toBe("left to their networks: VPC blue (Subnet blue-net 10.0.1.0/24): shop/api, shop/web");
  });

  test("the rule that is missing, of those that are served only", () => {
    const rule = "{annotation: ovn.kubernetes.io/vpc, notIn: [{defaultVPC: true}], ownership: foreign} and";
    expect(line([inVPC("shop/web", true), inUDN])?.advice).toContain(rule);
    expect(line([inVPC("shop/left", false), inUDN])?.advice).not.toContain("vpc");
  });
});
