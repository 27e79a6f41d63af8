import type { Flow } from "@fairlead/inspect";
import {
  type Answers,
  type DoctorAnswer,
  type FlowsAnswer,
  type LearnedAnswer,
  type NodeTraffic,
  shownFlows,
  type TraceAnswer,
  type TraceVisit,
  type WhatIfAnswer,
  waysOf,
} from "../../src/index.ts";

const visit = (chain: string, text: string, hook = "PREROUTING"): TraceVisit => ({
  hook,
  table: "nat",
  chain,
  rule: 1,
  text,
});

const begin = [
  visit("PREROUTING", '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES'),
  visit("KUBE-SERVICES", "-d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-WEB"),
];

const to = (address: string, probability: number) => ({
  probability,
  verdict: "accept" as const,
  destination: { address, port: 8080 },
  masqueraded: false,
  visits: [...begin, visit("KUBE-SEP-WEB", `-p tcp -m tcp -j DNAT --to-destination ${address}:8080`)],
});

const trace: TraceAnswer = {
  at: Date.now(),
  source: "plan of node-a",
  command: "fairlead trace --from pod --to 10.96.0.10:80 --on node-a",
  trace: {
    packet: { source: "10.144.255.254", destination: "10.96.0.10", dport: 80, protocol: "tcp" },
    outcomes: [
      to("10.144.1.5", 0.5),
      to("10.144.2.6", 0.25),
      {
        ...to("10.96.0.10", 0.25),
        verdict: "reject",
        visits: [visit("KUBE-FORWARD", "-j REJECT --reject-with icmp-port-unreachable", "FORWARD")],
      },
    ],
    cannotTell: [],
  },
};

const whatIf: WhatIfAnswer = {
  planAt: Date.now(),
  node: "node-a",
  services: ["shop/web"],
  owners: [{ service: "shop/web", family: "IPv4", before: "ours", after: "mixed", why: "endpoints of both networks" }],
  networks: {
    cidrs: [
      {
        cidr: "10.144.2.0/24",
        side: "excluded",
        source: "kube-ovn-subnets",
        objects: ["Subnet/blue"],
        after: "held",
        why: "lies in 10.144.0.0/16 (--cluster-cidr), which is ours; fairlead ownership --accept 10.144.2.0/24 lets it take effect",
      },
    ],
    problems: [],
    unread: ["calico-ippools: forbidden"],
  },
  families: [
    {
      family: "IPv4",
      traffic: {
        compared: 9,
        changes: [
          {
            destination: "tcp 10.96.0.10:80",
            from: ["a pod", "anybody"],
            before: { ways: { "10.144.1.5:8080": 0.5, "10.144.2.6:8080": 0.5 } },
            after: { ways: { "10.144.1.5:8080": 1 } },
          },
        ],
      },
    },
  ],
};

const flow = (port: number, address: string, more: Partial<Flow> = {}): Flow => ({
  family: "IPv4",
  protocol: "TCP",
  client: { address: "10.144.1.9", port },
  frontend: { kind: "cluster-ip", address: "10.96.0.10", port: 80 },
  service: "shop/web",
  port: "http",
  owner: "ours",
  endpoint: { address, port: 8080, condition: "ready", nodeName: "node-a" },
  state: "ESTABLISHED",
  replied: true,
  sent: { bytes: 4_300, packets: 12 },
  received: { bytes: 1_920_000, packets: 1_300 },
  ...more,
});

const FLOWS: readonly Flow[] = [
  flow(40_001, "10.144.1.5"),
  flow(40_002, "10.144.1.5"),
  flow(40_003, "10.144.2.8", {
    endpoint: { address: "10.144.2.8", port: 8080, condition: "terminating", nodeName: "node-b" },
  }),
  flow(40_004, "10.144.2.99", { endpoint: { address: "10.144.2.99", port: 8080, condition: "gone" }, replied: false }),
  flow(40_005, "", {
    service: "default/both",
    port: "",
    owner: "mixed",
    frontend: { kind: "cluster-ip", address: "10.96.0.13", port: 80 },
    endpoint: { address: "10.144.1.7", port: 80, condition: "ready", nodeName: "node-a" },
  }),
];

function flows(query: URLSearchParams): FlowsAnswer {
  const service = query.get("service");
  const found = FLOWS.filter((one) => service === null || one.service === service);
  const at = Date.now();
  const counts = { began: 0, opened: Math.round(at / 500), bytes: at * 200 };
  return { node: query.get("node") ?? "", at, counts, ...shownFlows(found) };
}

function learned(query: URLSearchParams): LearnedAnswer {
  const since = "2026-11-22T08:00:00.000Z";
  const pool = { side: "excluded", source: "kube-ovn-subnets", since } as const;
  return {
    node: query.get("node") ?? "",
    at: Date.now(),
    networks: {
      sources: [
        { source: "kube-ovn-subnets", side: "excluded", state: "listed" },
        { source: "calico-ippools", side: "own", state: "forbidden" },
      ],
      cidrs: [
        { ...pool, cidr: "10.244.0.0/16", objects: ["Subnet/ovn-default"], stage: "effective" },
        { ...pool, cidr: "10.144.9.0/24", objects: ["Subnet/blue", HOSTILE], stage: "effective" },
        { ...pool, cidr: "10.96.0.0/12", objects: ["Subnet/typo"], stage: "refused", why: "services have it" },
        { ...pool, cidr: "10.144.2.0/24", objects: ["Subnet/red"], stage: "held", why: "lies in ours" },
      ],
      conflicts: [{ cidr: "10.144.9.0/24", side: "excluded", within: "10.144.0.0/16" }],
    },
  };
}

/** An object's name that an API server would never let in. */
export const HOSTILE = `Subnet/<img src=x onerror="globalThis.hacked=1">`;

function doctor(query: URLSearchParams): DoctorAnswer {
  const node = query.get("node") ?? "";
  const good = { check: "connection tracking", state: "good", found: "there" } as const;
  const unknown = { check: "proxies on this node", state: "unknown", found: "none seen, not all may be" } as const;
  const bad = {
    check: "net.ipv4.ip_forward",
    state: "bad",
    found: "0",
    advice: "sysctl -w net.ipv4.ip_forward=1: packets to pods are not forwarded without it",
  } as const;
  return { node, at: Date.now(), diagnoses: node === "node-a" ? [good, unknown, bad] : [good] };
}

/** What the commands would answer: for tests of the page only; the commands' own tests ask them. */
export const cannedAnswers: Answers = {
  gets: {
    "/api/trace": async () => trace,
    "/api/flows": async (query) => flows(query),
    "/api/networks/learned": async (query) => learned(query),
    "/api/doctor": async (query) => doctor(query),
  },
  posts: { "/api/what-if": async () => whatIf },
};

/** What an attacker would write wherever text can be written. */
export const MARKUP = `<img src=x onerror="globalThis.hacked=1">"'\`</script><script>globalThis.hacked=1</script>`;

/** Fields whose values are words of a fixed list, numbers as text, or addresses that are read. */
const FIXED =
  /^(?:address|after|before|cidr|condition|conflicts|family|frontend|kind|owner|ownership|protocol|side|since|stage|state|verdict)$/;

/** The same, with markup behind every text that others than us can write. */
function withMarkup(value: unknown): unknown {
  if (typeof value === "string") return `${value} ${MARKUP}`;
  if (Array.isArray(value)) return value.map(withMarkup);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      typeof one === "string" && FIXED.test(key) ? one : withMarkup(one),
    ]),
  );
}

/** The commands' answers with markup in them. */
export const hostileAnswers: Answers = {
  gets: Object.fromEntries(
    Object.entries(cannedAnswers.gets).map(([path, answer]) => [
      path,
      async (query, body) => {
        const given = withMarkup(await answer(query, body));
        // The page asks for one node and waits for that one's answer.
        return { ...(given as object), ...(query.get("node") !== null && { node: query.get("node") }) };
      },
    ]),
  ),
  posts: { "/api/what-if": async () => withMarkup(whatIf) },
};

/** Kernels that are as planned, and agents that are well; node-a tracks connections. */
export const calmNodes = () => ({
  reaches: () => true,
  traffic: async (node: string): Promise<NodeTraffic> => ({
    ways: node === "node-a" ? waysOf(FLOWS) : [],
    since: { ms: 2_000, opened: 6, bytes: 400_000 },
  }),
  kernel: async () => [{ family: "IPv4" as const, services: [] }],
  agent: async () => ({ mode: "iptables", healthy: true, version: "0.0.0" }),
});
