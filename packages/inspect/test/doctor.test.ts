import { describe, expect, test } from "vitest";
import { diagnose, type NodeFacts } from "../src/index.ts";

const IPVS: NodeFacts["needs"] = {
  iptables: ["nat", "filter"],
  kernelParts: [
    { name: "ipvs", remedy: "load ip_vs" },
    { name: "ipset", remedy: "load ip_set" },
  ],
  sysctls: [{ key: "net/ipv4/vs/conntrack", value: "1", why: "virtual servers need it" }],
};

const NFTABLES: NodeFacts["needs"] = { iptables: [], kernelParts: [], sysctls: [], nftTables: ["kube-proxy"] };

const HEALTHY: NodeFacts = {
  needs: { iptables: ["nat", "filter"], kernelParts: [], sysctls: [] },
  variant: "nft",
  mayReadRules: true,
  rules: [
    { variant: "nft", readable: true, hinted: true, proxy: 40, others: 3, dropping: [] },
    { variant: "legacy", readable: true, hinted: false, proxy: 0, others: 0, dropping: [] },
  ],
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

const UNDECIDED: NodeFacts["rules"] = [
  { variant: "nft", readable: true, hinted: false, proxy: 40, others: 0, dropping: [] },
  { variant: "legacy", readable: true, hinted: false, proxy: 12, others: 0, dropping: [] },
];

/** An API server's answers, of a cluster without Calico and Cilium if nothing else is said. */
function answers(more: Partial<Extract<NodeFacts["api"], { kind: "answers" }>> = {}): NodeFacts["api"] {
  const absent = { kind: "absent" } as const;
  return { kind: "answers", server: "https://10.96.0.1", denied: [], calico: absent, cilium: absent, ...more };
}

test("what Services ask for: harm is a warning, a note is not", () => {
  const notice = (name: string, effect: "open" | "note") => ({
    kind: "Service" as const,
    namespace: "shop",
    name,
    field: "spec.loadBalancerSourceRanges",
    value: "",
    reason: "is odd",
    effect,
  });
  expect(complaints({ notices: [] })).toEqual([]);
  expect(complaints({ notices: [notice("a", "note")] })).toEqual([]);
  const many = Array.from({ length: 7 }, (_, i) => notice(`lb-${i}`, "open"));
  expect(complaints({ notices: many })).toEqual([
    expect.stringMatching(/^warning what Services ask for: shop\/lb-0: .* is odd; .*; and 2 more$/),
  ]);
});

const REJECT =
  "-A INPUT -p tcp -m mark ! --mark 0x4000/0x4000 -m set --match-set ovn40services dst -m conntrack --ctstate NEW -j REJECT --reject-with icmp-port-unreachable";

function subnet(name: string) {
  return { id: "kube-ovn-subnets", objects: [`Subnet/${name}`] };
}

/** `state check: found`, of all that is not good. */
function complaints(facts: Partial<NodeFacts>): string[] {
  return diagnose({ ...HEALTHY, ...facts })
    .filter(({ state }) => state !== "good")
    .map(({ state, check, found }) => `${state} ${check}: ${found}`);
}

describe("the doctor", () => {
  test.each<[what: string, facts: Partial<NodeFacts>, expected: string[]]>([
    ["a healthy node", {}, []],
    ["a healthy node in ipvs mode", { needs: IPVS }, []],
    ["a mode that tells excluded clients from others", { tellsClients: true }, []],
    [
      "a mode that does not",
      { needs: IPVS, tellsClients: false },
      [
        "warning excluded clients: this mode cannot distinguish clients: ClusterIPs of other networks are left to them for all clients",
      ],
    ],
    [
      "no iptables",
      { variant: undefined as never, rules: [] },
      ["bad iptables: not found", "unknown policies: may not be read"],
    ],
    ["a healthy node in nftables mode", { needs: NFTABLES, nftTables: ["ip kube-proxy", "ip6 kube-proxy"] }, []],
    [
      "a node without iptables in nftables mode",
      { needs: NFTABLES, nftTables: ["ip kube-proxy"], variant: undefined as never, rules: [] },
      [],
    ],
    [
      "no table in nftables mode",
      { needs: NFTABLES, nftTables: ["ip mine"] },
      ["warning nft tables of others: ip mine", "bad nft tables of the mode: kube-proxy: not there"],
    ],
    [
      "tables that cannot be listed in nftables mode",
      { needs: NFTABLES, nftTables: undefined },
      ["unknown nft tables of others: cannot be listed", "unknown nft tables of the mode: cannot be listed"],
    ],
    ["no rights", { mayReadRules: false }, ["bad iptables: nft, but its rules may not be read"]],
    [
      "a proxy's leftovers in the other variant",
      {
        rules: [
          { variant: "nft", readable: true, hinted: true, proxy: 40, others: 0, dropping: [] },
          { variant: "legacy", readable: true, hinted: false, proxy: 12, others: 0, dropping: [] },
        ],
      },
      ["bad rules of the other variant: legacy has 12 rules of a proxy and 0 of others, alongside nft"],
    ],
    [
      "rules of a proxy in both variants, and no chain of kubelet in either",
      { rules: UNDECIDED },
      [
        "bad iptables: both variants have rules of a proxy",
        "bad rules of the other variant: legacy has 12 rules of a proxy and 0 of others, alongside nft",
      ],
    ],
    [
      "the same in a mode that writes neither",
      { rules: UNDECIDED, needs: NFTABLES, nftTables: ["ip kube-proxy"] },
      ["bad rules of the other variant: legacy has 12 rules of a proxy and 0 of others, alongside nft"],
    ],
    [
      "others in the other variant",
      {
        rules: [
          { variant: "nft", readable: true, hinted: true, proxy: 40, others: 0, dropping: [] },
          { variant: "legacy", readable: true, hinted: false, proxy: 0, others: 5, dropping: [] },
        ],
      },
      ["warning rules of the other variant: legacy has 0 rules of a proxy and 5 of others, alongside nft"],
    ],
    [
      "a policy that drops",
      { rules: [{ variant: "nft", readable: true, hinted: true, proxy: 40, others: 0, dropping: ["FORWARD"] }] },
      ["warning policies: FORWARD of filter drop what no rule accepts"],
    ],
    [
      "two hundred tables with names of two hundred characters",
      { nftTables: Array.from({ length: 200 }, (_, at) => `ip ${String(at).padEnd(200, "x")}`) },
      [
        `warning nft tables of others: ${[0, 1, 2, 3, 4].map((at) => `ip ${String(at).padEnd(56, "x")}…`).join(", ")}, and 195 more`,
      ],
    ],
    [
      "the table of replyVia, where it is configured",
      { nftTables: ["ip fairlead_reply", "ip6 fairlead_reply"], uplinks: [{ interface: "eth1", filter: 0 }] },
      [],
    ],
    ["firewalld", { nftTables: ["inet firewalld"] }, ["warning nft tables of others: inet firewalld"]],
    [
      "what nftables mode left, beside a proxy that says that it is in another mode",
      { nftTables: ["ip kube-proxy"], running: { mode: "iptables", nftTables: [] } },
      ["bad nft tables of others: ip kube-proxy: left by nftables mode; the proxy runs in iptables mode"],
    ],
    [
      "what nftables mode left, and no proxy",
      { nftTables: ["ip kube-proxy"], proxies: [] },
      [
        "bad nft tables of others: ip kube-proxy: left by nftables mode, and no proxy runs",
        "warning proxies on this node: none runs",
      ],
    ],
    [
      "the table of a proxy that runs in nftables mode, whatever mode was given",
      { nftTables: ["ip kube-proxy"], running: { mode: "nftables", nftTables: ["kube-proxy"] } },
      [],
    ],
    [
      "a table that a proxy may serve by that does not say its mode",
      { nftTables: ["ip kube-proxy"] },
      ["unknown nft tables of others: ip kube-proxy: whether a proxy in nftables mode serves by them is not known"],
    ],
    [
      "a proxy that answers, where processes are not seen",
      { proxies: [], allProcesses: false, running: { mode: "ipvs", nftTables: [] } },
      [],
    ],
    [
      "rules of a proxy in the other variant only: its own image chose that one",
      {
        rules: [
          { variant: "nft", readable: true, hinted: true, proxy: 0, others: 3, dropping: [] },
          { variant: "legacy", readable: true, hinted: false, proxy: 40, others: 0, dropping: [] },
        ],
      },
      ["warning rules of the other variant: legacy has 40 rules of a proxy and 0 of others, alongside nft"],
    ],
    ["no forwarding", { sysctls: { "net/ipv4/ip_forward": "0" } }, ["bad net.ipv4.ip_forward: 0"]],
    [
      "IPv6 without forwarding",
      {
        cidrs: [
          { cidr: "fd00:144::/48", use: "pods" },
          { cidr: "fd00:96::/112", use: "services" },
          { cidr: "fd00:201::10/128", use: "node" },
        ],
        routes: ["fd00:144::/48"],
      },
      ["bad net.ipv6.conf.all.forwarding: not there"],
    ],
    [
      "a bridge past iptables",
      { sysctls: { ...HEALTHY.sysctls, "net/bridge/bridge-nf-call-iptables": "0" } },
      ["warning net.bridge.bridge-nf-call-iptables: 0"],
    ],
    [
      "a strict filter where answers leave by the client's interface",
      {
        uplinks: [
          { interface: "eth1", filter: 1 },
          { interface: "eth2", filter: 2 },
        ],
      },
      ["bad answers by eth1: rp_filter is 1 (strict)"],
    ],
    [
      "a kernel without IPVS",
      {
        needs: IPVS,
        kernel: { "connection tracking": true, ipvs: false, ipset: false },
        sysctls: { "net/ipv4/ip_forward": "1" },
      },
      [
        "bad ipvs: this kernel does not have it",
        "bad ipset: this kernel does not have it",
        "bad net.ipv4.vs.conntrack: not there",
      ],
    ],
    [
      "no connection tracking",
      { kernel: { ...HEALTHY.kernel, "connection tracking": false } },
      ["bad connection tracking: this kernel does not have it"],
    ],
    ["no proxy", { proxies: [] }, ["warning proxies on this node: none runs"]],
    [
      "the table of an agent with a name, which runs or may run",
      { nftTables: ["ip fairlead-edge"], instances: [{ name: "edge", tables: ["ip fairlead-edge"], running: true }] },
      [],
    ],
    [
      "the tables of one that does not run",
      {
        nftTables: ["ip fairlead-edge", "ip6 fairlead-edge"],
        instances: [{ name: "edge", tables: ["ip fairlead-edge", "ip6 fairlead-edge"], running: false }],
      },
      ["warning instance edge: service proxy edge has ip fairlead-edge, ip6 fairlead-edge, and does not run"],
    ],
    [
      "an agent with a name beside a first proxy in nftables mode",
      {
        needs: { ...NFTABLES, nftTables: ["fairlead-edge"] },
        nftTables: ["ip kube-proxy", "ip fairlead-edge"],
        serviceProxyName: "edge",
      },
      [],
    ],
    [
      "two proxies",
      { proxies: [...HEALTHY.proxies, { pid: 9, name: "kube-proxy" }] },
      ["bad proxies on this node: fairlead-proxy (process 7), kube-proxy (process 9)"],
    ],
    [
      "no route to pods",
      { routes: ["10.201.0.0/24"] },
      ["warning route to pods in 10.144.0.0/16: none but a default route"],
    ],
    [
      "overlapping networks",
      { cidrs: [...HEALTHY.cidrs, { cidr: "10.144.7.0/24", use: "services" }] },
      ["bad CIDRs of services: overlapping: pods 10.144.0.0/16 and services 10.144.7.0/24"],
    ],
    [
      "excluded pods over the nodes' addresses",
      { cidrs: [...HEALTHY.cidrs, { cidr: "10.201.0.0/24", use: "excluded pods" }] },
      ["bad CIDRs with nodes: overlapping: node 10.201.0.10/32 and excluded pods 10.201.0.0/24"],
    ],
    [
      "the node's address on its pods' bridge, beside the node's own",
      { cidrs: [...HEALTHY.cidrs, { cidr: "10.144.1.1/32", use: "node" }] },
      ["warning CIDRs with nodes: overlapping: pods 10.144.0.0/16 and node 10.144.1.1/32"],
    ],
    [
      "the same, and nothing is known of services",
      { cidrs: [{ cidr: "10.144.1.1/32", use: "node" }, ...HEALTHY.cidrs.filter(({ use }) => use !== "services")] },
      [
        "warning CIDRs with nodes: overlapping: node 10.144.1.1/32 and pods 10.144.0.0/16",
        "unknown CIDRs: those of services are not known",
      ],
    ],
    [
      "legacy rules that iptables mode left, and the proxy runs in nftables mode",
      {
        needs: NFTABLES,
        nftTables: ["ip kube-proxy"],
        rules: [
          { variant: "nft", readable: true, hinted: true, proxy: 0, others: 3, dropping: [] },
          { variant: "legacy", readable: true, hinted: false, proxy: 12, others: 0, dropping: [] },
        ],
      },
      ["bad rules of the other variant: legacy has 12 rules of a proxy and 0 of others, alongside nft"],
    ],
    [
      "a node whose only address is in the pods' CIDR",
      { cidrs: [...HEALTHY.cidrs.slice(0, 3), { cidr: "10.144.1.1/32", use: "node" }] },
      ["bad CIDRs with nodes: overlapping: pods 10.144.0.0/16 and node 10.144.1.1/32"],
    ],
    [
      "an underlay that was learned",
      { cidrs: [...HEALTHY.cidrs, { cidr: "10.201.0.0/24", use: "excluded pods", source: subnet("under") }] },
      [
        "warning CIDRs with nodes: overlapping: node 10.201.0.10/32 and excluded pods 10.201.0.0/24 of kube-ovn-subnets (Subnet/under)",
      ],
    ],
    [
      "one CIDR on both sides, and one within the other side's",
      {
        routes: ["10.144.2.0/24", "10.244.7.0/24"],
        cidrs: [
          ...HEALTHY.cidrs,
          { cidr: "10.144.0.0/16", use: "excluded pods", source: subnet("same") },
          { cidr: "10.244.7.0/24", use: "pods", source: { id: "calico-ippools", objects: ["IPPool/part"] } },
        ],
      },
      [
        "bad CIDRs on both sides: overlapping: pods 10.144.0.0/16 and excluded pods 10.144.0.0/16 of kube-ovn-subnets (Subnet/same)",
        "warning CIDRs within the other side's: overlapping: excluded pods 10.244.0.0/16 and pods 10.244.7.0/24 of calico-ippools (IPPool/part)",
      ],
    ],
    [
      "a prefix that two sources claim, and a subnet within one of the same network",
      {
        cidrs: [
          ...HEALTHY.cidrs,
          { cidr: "10.16.0.0/16", use: "excluded pods", source: subnet("ovn-default") },
          { cidr: "10.16.7.0/24", use: "excluded pods", source: subnet("part") },
          {
            cidr: "10.16.8.0/24",
            use: "excluded pods",
            source: { id: "cilium-pools", objects: ["CiliumPodIPPool/a"] },
          },
        ],
      },
      [
        "warning CIDRs that two sources claim: overlapping: excluded pods 10.16.0.0/16 of kube-ovn-subnets (Subnet/ovn-default) and " +
          "excluded pods 10.16.8.0/24 of cilium-pools (CiliumPodIPPool/a)",
      ],
    ],
    [
      "kube-ovn's REJECT in ipvs mode",
      { others: { ...HEALTHY.others, kubeOVNRejects: [REJECT], servesBySets: true } },
      [`bad kube-ovn's REJECT of services: ${REJECT}`],
    ],
    [
      "kube-ovn's REJECT for sets that ipvs mode left",
      { others: { ...HEALTHY.others, kubeOVNRejects: [REJECT] } },
      [`warning kube-ovn's REJECT of services: ${REJECT}`],
    ],
    [
      "Calico with BPF, which cleans up",
      { api: answers({ calico: { kind: "found", value: { enabled: true, cleansUp: true } } }) },
      [
        "bad Calico with BPF: FelixConfiguration default has bpfEnabled: true, and its clean-up deletes a proxy's chains and tables",
      ],
    ],
    [
      "Calico with BPF, which does not",
      { api: answers({ calico: { kind: "found", value: { enabled: true, cleansUp: false } } }) },
      ["bad Calico with BPF: FelixConfiguration default has bpfEnabled: true"],
    ],
    [
      "Calico without BPF",
      { api: answers({ calico: { kind: "found", value: { enabled: false, cleansUp: true } } }) },
      [],
    ],
    [
      "signs of Calico's BPF",
      {
        api: answers({ calico: { kind: "forbidden" } }),
        others: { ...HEALTHY.others, pinnedMaps: ["cali_v4_nat_fe3", "cali_v4_routes"] },
      },
      ["warning Calico with BPF: its maps of services are pinned on this node: cali_v4_nat_fe3"],
    ],
    ...["true", "strict"].map((value): [string, Partial<NodeFacts>, string[]] => [
      `a Cilium that replaces kube-proxy (${value})`,
      { api: answers({ cilium: { kind: "found", value } }) },
      [`bad Cilium in kube-proxy's place: ConfigMap kube-system/cilium-config has kube-proxy-replacement: "${value}"`],
    ]),
    [
      "a Cilium that does not, with its maps",
      {
        api: answers({ cilium: { kind: "found", value: "false" } }),
        others: { ...HEALTHY.others, pinnedMaps: ["cilium_lb4_services_v2"], ciliumChains: ["CILIUM_INPUT"] },
      },
      [],
    ],
    [
      "Cilium's chains, and nobody to ask",
      {
        api: answers({ cilium: { kind: "forbidden" } }),
        others: { ...HEALTHY.others, ciliumChains: ["CILIUM_INPUT"] },
      },
      [
        "warning Cilium in kube-proxy's place: there are its chains: CILIUM_INPUT; whether it replaces kube-proxy they do not say",
      ],
    ],
    [
      "no API server",
      { api: { kind: "unreachable", reason: "connect ECONNREFUSED 10.0.0.1:6443" } },
      ["bad API server: connect ECONNREFUSED 10.0.0.1:6443"],
    ],
    [
      "too few rights",
      { api: answers({ denied: ["list endpointslices.discovery.k8s.io"] }) },
      ["bad API server: https://10.96.0.1 does not allow: list endpointslices.discovery.k8s.io"],
    ],
    [
      "too few rights of a user who is not the agent",
      { api: answers({ denied: ["create events.events.k8s.io"], ofOther: true }) },
      [
        "unknown API server: https://10.96.0.1 does not allow your user what the agent needs: create events.events.k8s.io",
      ],
    ],
  ])("%s", (_, facts, expected) => expect(complaints(facts)).toEqual(expected));

  test.each<[what: string, facts: Partial<NodeFacts>, expected: string[]]>([
    [
      "rules of either variant",
      {
        mayReadRules: false,
        rules: [
          { variant: "nft", readable: false, hinted: false, proxy: 0, others: 0, dropping: [] },
          { variant: "legacy", readable: false, hinted: false, proxy: 0, others: 0, dropping: [] },
        ],
      },
      [
        "bad iptables: nft, but its rules may not be read",
        "unknown rules of the other variant: those of legacy may not be read",
        "unknown policies: may not be read",
      ],
    ],
    ["nft's tables", { nftTables: undefined }, ["unknown nft tables of others: cannot be listed"]],
    [
      "a setting",
      { sysctls: { ...HEALTHY.sysctls, "net/ipv4/ip_forward": undefined } },
      ["unknown net.ipv4.ip_forward: may not be read"],
    ],
    [
      "a part of the kernel",
      { needs: IPVS, kernel: { ...HEALTHY.kernel, ipset: undefined } },
      ["unknown ipset: may not be looked at"],
    ],
    ["processes", { proxies: [], allProcesses: false }, ["unknown proxies on this node: none is seen"]],
    ["some processes", { allProcesses: false }, ["unknown proxies on this node: fairlead-proxy (process 7) is seen"]],
    ["routes", { routes: undefined }, ["unknown route to pods in 10.144.0.0/16: routes cannot be listed"]],
    [
      "CIDRs",
      { cidrs: [{ cidr: "10.201.0.10/32", use: "node" }] },
      [
        "unknown route to pods: their CIDRs are not known",
        "unknown CIDRs: those of pods and services are not known; the others do not overlap: node 10.201.0.10/32",
      ],
    ],
    [
      "other networks",
      {
        api: answers({ calico: { kind: "forbidden" }, cilium: { kind: "forbidden" } }),
        others: { kubeOVNRejects: undefined, servesBySets: undefined, ciliumChains: undefined, pinnedMaps: undefined },
      },
      [
        "unknown kube-ovn's REJECT of services: rules may not be read",
        "unknown Calico with BPF: pinned BPF maps cannot be listed, and FelixConfiguration default may not be read",
        "unknown Cilium in kube-proxy's place: pinned BPF maps cannot be listed, and ConfigMap kube-system/cilium-config may not be read",
      ],
    ],
    ["the API server", { api: { kind: "unasked" } }, ["unknown API server: not asked: no cluster is known"]],
  ])("%s that cannot be looked at is unknown, never good", (_, facts, expected) =>
    expect(complaints(facts)).toEqual(expected),
  );

  test("whatever is not good comes with what to do", () => {
    const all = diagnose({
      ...HEALTHY,
      mayReadRules: false,
      proxies: [],
      sysctls: {},
      routes: [],
      nftTables: ["inet x"],
    });
    for (const { state, advice } of all) expect(advice !== undefined).toBe(state !== "good");
  });
});

describe("services that are left to other networks", () => {
  const row = (ownership: "ours" | "foreign", endpoints = 1) => ({
    service: "default/web" as const,
    ipFamily: "IPv4" as const,
    ownership,
    ownEndpoints: ownership === "ours" ? endpoints : 0,
    excludedEndpoints: ownership === "ours" ? 0 : endpoints,
  });
  const agent = (node: string, ...services: readonly ReturnType<typeof row>[]) => ({ node, services, cidrs: [] });
  const ANSWERED = { unanswered: [], unlisted: [] };
  const of = (networks: NonNullable<NodeFacts["networks"]>) => complaints({ networks });

  test("all is well where nodes agree, and each called Service is answered", () => {
    expect(of({ called: ANSWERED, agents: [agent("a", row("ours")), agent("b", row("ours"))] })).toEqual([]);
  });

  test("where no agent is found, nothing is known of decisions", () => {
    expect(of({ called: ANSWERED, agents: [] })).toEqual(["unknown decisions of the nodes: no agent's pod is found"]);
  });

  test("a webhook that nobody here answers is bad, one that may not be read is unknown", () => {
    const unanswered = [{ service: "vault/hook", objects: ["ValidatingWebhookConfiguration/vault"] }];
    const [bad] = of({ called: { unanswered, unlisted: [] }, agents: [] });
    expect(bad).toContain("left unanswered: vault/hook (ValidatingWebhookConfiguration/vault)");
    const [unknown] = of({ called: { unanswered: [], unlisted: ["apiservices.apiregistration.k8s.io"] }, agents: [] });
    expect(unknown).toContain("may not list apiservices.apiregistration.k8s.io");
  });

  test("nodes that decide otherwise than most are named; services without endpoints say nothing", () => {
    const agents = [agent("a", row("ours")), agent("b", row("foreign")), agent("c", row("ours"))];
    expect(of({ called: ANSWERED, agents })).toEqual([
      expect.stringContaining("decisions of the nodes: b: default/web IPv4 foreign, ours elsewhere"),
    ]);
    const empty = [agent("a", row("ours", 0)), agent("b", row("foreign", 0))];
    expect(of({ called: ANSWERED, agents: empty })).toEqual([]);
  });

  test("agents that do not answer, and those that cannot be found, are unknown", () => {
    const agents = [agent("a", row("ours")), { node: "b", problem: "no" }];
    expect(of({ called: ANSWERED, agents })).toEqual([expect.stringContaining("b: no answer; the other 1 decide")]);
    expect(of({ called: ANSWERED, agents: { problem: "pods may not be listed" } })).toEqual([
      expect.stringContaining("decisions of the nodes: pods may not be listed"),
    ]);
  });

  test("kept CIDRs are named with the nodes that keep them", () => {
    const kept = { cidr: "10.17.0.0/16", source: "kube-ovn-subnets", kept: true } as const;
    const agents = ["a", "b"].map((node) => ({ node, services: [], cidrs: [kept] }));
    expect(of({ called: ANSWERED, agents })).toEqual([
      expect.stringContaining("no object defines them anymore: 10.17.0.0/16 of kube-ovn-subnets (a; b)"),
    ]);
  });
});

describe("Services in networks that nodes do not share", () => {
  const inVPC = (service: string, isServed: boolean) =>
    ({ service, network: { kind: "VPC", name: "blue" }, isServed }) as const;
  const inUDN = (isServed: boolean) =>
    ({ service: "nad-l3/web", network: { kind: "user-defined network", name: "l3-network" }, isServed }) as const;
  const CHECK = "Services in networks that nodes do not share";
  const found = (isolated: NodeFacts["isolated"], api = answers()) =>
    diagnose({ ...HEALTHY, api, ...(isolated && { isolated }) }).find(({ check }) => check === CHECK);

  test("none, or none was asked for: no line", () => {
    expect([found([]), found(undefined)]).toEqual([undefined, undefined]);
  });

  test("left to their networks: good, with the VPC's Subnets", () => {
    const subnets = [
      { name: "blue-net", vpc: "blue", cidr: "10.0.1.0/24" },
      { name: "red-net", vpc: "red", cidr: "10.0.1.0/24" },
    ];
    expect(found([inVPC("shop/web", false), inVPC("shop/api", false)], answers({ subnets }))).toEqual({
      check: CHECK,
      state: "good",
      found: "left to their networks: VPC blue (Subnet blue-net 10.0.1.0/24): shop/api, shop/web",
    });
  });

  test("served all the same: a warning with the rule that is missing, of those only", () => {
    const both = found([inVPC("shop/web", true), inVPC("shop/left", false), inUDN(true)]);
    expect(both).toMatchObject({
      state: "warning",
      found:
        "served here, where no node can reach the pods: VPC blue: shop/web; user-defined network l3-network: nad-l3/web",
      adviceName: "leave-isolated",
    });
    expect(both?.advice).toContain(
      "{annotation: ovn.kubernetes.io/vpc, notIn: [{defaultVPC: true}], ownership: foreign} and",
    );
    expect(found([inUDN(true)])?.advice).not.toContain("vpc");
  });
});

describe("the fast path", () => {
  const USED = { flowtables: true, test: { kind: "passed" }, devices: ["cali1"], refused: [], others: [] } as const;

  test.each<[what: string, facts: Partial<NonNullable<NodeFacts["fastPath"]>>, expected: string[]]>([
    ["is good with devices", {}, []],
    [
      "needs a kernel with flowtables",
      { flowtables: false },
      ["warning fast path: disabled: this kernel has no flowtables"],
    ],
    [
      "needs a kernel that passes the test",
      { test: { kind: "failed", reason: "IPv4: no answer" }, devices: "no flowtable" },
      ["warning fast path: disabled: this kernel failed its test: IPv4: no answer"],
    ],
    [
      "needs a test",
      { test: { kind: "none" }, devices: "no flowtable" },
      ["warning fast path: disabled: there is no result of its test since this node booted"],
    ],
    [
      "may be disabled for other reasons",
      { devices: "no flowtable" },
      ["warning fast path: disabled: there is no flowtable"],
    ],
    ["may not be seen", { devices: undefined }, ["unknown fast path: the flowtable cannot be read"]],
    ["needs devices", { devices: [] }, ["warning fast path: no device is in the flowtable"]],
    [
      "needs to know pods where devices are chosen",
      { devices: "no flowtable", auto: "devices: auto needs clusterCIDR; give it, or name the devices" },
      ["warning fast path: disabled: devices: auto needs clusterCIDR; give it, or name the devices"],
    ],
    [
      "leaves devices out",
      { refused: [{ device: "cni0", reason: "it is a bridge" }] },
      ["warning fast path for cni0: left out: it is a bridge"],
    ],
    [
      "may share devices",
      { others: [{ table: "ip calico", flowtable: "offload", devices: ["cali1", "cali2", "c3", "c4", "c5", "c6"] }] },
      [
        "warning flowtables of other programs: table ip calico has the flowtable offload on cali1, cali2, c3, c4, c5 and 1 more, too",
      ],
    ],
  ])("%s", (_what, facts, expected) => {
    expect(complaints({ fastPath: { ...USED, ...facts } })).toEqual(expected);
  });
});
