import type { Answers, TraceAnswer, TraceVisit, WhatIfAnswer } from "../../src/index.ts";

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

/** What the commands would answer: for tests of the page only; the commands' own tests ask them. */
export const cannedAnswers: Answers = {
  gets: { "/api/trace": async () => trace },
  posts: { "/api/what-if": async () => whatIf },
};
