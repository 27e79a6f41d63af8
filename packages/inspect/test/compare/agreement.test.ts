import { parseSave, type RuleSet } from "@fairlead/netfilter";
import { type GoldenScenario, goldenScenario, goldenScenarios } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { agreementOf, factsOf, type PacketFinding, type PlannedNode, waysText } from "../../src/index.ts";
import { planned } from "../support/scenario.ts";

const [NODE_ADDRESS, OTHER_ADDRESS] = ["10.201.0.10", "fd00:201::10"];
const environment = {
  localAddresses: [NODE_ADDRESS, OTHER_ADDRESS],
  outInterface: (to: string) => ([NODE_ADDRESS, OTHER_ADDRESS, "127.0.0.1", "::1"].includes(to) ? "lo" : "eth0"),
};

function agreement({ planner, mode }: PlannedNode, ruleSet: RuleSet) {
  const { groups, node } = planner.plan("IPv4");
  return agreementOf(groups.values(), node, { ruleSet, environment }, NODE_ADDRESS, factsOf(mode).semantics);
}

describe("the plan and what kube-proxy wrote for the same objects", () => {
  test.each(goldenScenarios())("$name: every kind of packet ends where the plan wants it", async (scenario) => {
    const { checked, disagreements } = agreement(await planned(scenario), parseSave(scenario.iptables));
    expect(disagreements.map(reported)).toEqual([]);
    expect(checked).toBeGreaterThan(0);
  });
});

describe("a rule that is not as it should be", () => {
  const scenario = goldenScenario("09-loadbalancer");

  test.each<{ damage: string; change: (text: string) => string; expected: RegExp }>([
    {
      damage: "an endpoint's share",
      change: (text) => text.replace("0.50000000000", "0.25000000000"),
      expected: /load-balancer .* outside: .*50 %.* but .*25 %/,
    },
    {
      damage: "a dispatch rule gone",
      change: (text) => text.replace(/^-A KUBE-SERVICES -d 203\.0\.113\.9.*\n/m, ""),
      expected: /load-balancer .* outside: .* but untouched/,
    },
    {
      damage: "masquerading gone",
      change: (text) => text.replace(/^-A KUBE-POSTROUTING .*MASQUERADE.*\n/m, ""),
      expected: /cluster-ip .* outside: .* masqueraded .* but 10\.144/,
    },
    {
      damage: "an endpoint that is not ours",
      change: (text) => text.replace(/--to-destination \S+/, "--to-destination 10.144.9.9:8080"),
      expected: /node-port .* node: .* but .*10\.144\.9\.9:8080/,
    },
  ])("$damage", async ({ change, expected }) => {
    const damaged = change(scenario.iptables);
    expect(damaged).not.toBe(scenario.iptables);
    const { disagreements } = agreement(await planned(scenario), parseSave(damaged));
    expect(disagreements.map(reported).join("\n")).toMatch(expected);
  });

  test("a match that is not known: it depends on that, and is no disagreement", async () => {
    const damaged = scenario.iptables.replace(/(-A KUBE-SERVICES )(-d 203)/, "$1-m strange --odd $2");
    const { disagreements, unknown } = agreement(await planned(scenario), parseSave(damaged));
    expect(disagreements).toEqual([]);
    expect(unknown.map(({ problem }) => problem).join()).toContain("strange");
    expect(new Set(unknown.map(({ frontend }) => frontend.kind))).toEqual(new Set(["load-balancer"]));
  });
});

describe("a pod network that masquerades on its own account", () => {
  const scenario = goldenScenario("09-loadbalancer");
  const others = (text: string) => text.replace(/^-A POSTROUTING .*\n/m, "$&-A POSTROUTING -j MASQUERADE\n");

  test("is nothing that the proxy's rules lack", async () => {
    const both = others(scenario.iptables);
    expect(both).not.toBe(scenario.iptables);
    const { disagreements } = agreement(await planned(scenario), parseSave(both));
    expect(disagreements.map(reported)).toEqual([]);
  });

  test("hides no damage", async () => {
    const damaged = others(scenario.iptables).replace("0.50000000000", "0.25000000000");
    const { disagreements } = agreement(await planned(scenario), parseSave(damaged));
    expect(disagreements.map(reported).join("\n")).toMatch(/load-balancer .* outside: .*50 %.* but .*25 %/);
  });
});

test("external addresses without endpoints: iptables mode lets the node's own packets out, and rejects others'", async () => {
  const { objects, node } = goldenScenario("09-loadbalancer");
  const empty = objects.filter(({ kind }) => kind !== "EndpointSlice");
  const plan = await planned({ objects: empty, node });
  const reject = (at: string) => `-A ${at} -p tcp -m tcp -j REJECT --reject-with icmp-port-unreachable`;
  const hooks = ["INPUT", "FORWARD"].map(reject);
  const rules = parseSave(`*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n${hooks.join("\n")}\nCOMMIT\n`);
  const found = agreement(plan, rules).disagreements.map(reported);
  // A ClusterIP is to be refused to the node too.
  expect(found.every((line) => /^cluster-ip .* node: reject but untouched$/.test(line))).toBe(true);
  expect(found.length).toBeGreaterThan(0);
  const nftables = agreement(await planned({ objects: empty, node }, { mode: "nftables" }), rules).disagreements;
  expect(nftables.map(reported).join("\n")).toMatch(/load-balancer .* node: reject but untouched/);
});

test("source ranges: who is not in them is dropped", async () => {
  const scenario: GoldenScenario = goldenScenario("10-lb-source-ranges");
  const open = scenario.iptables.replace(/^-A KUBE-PROXY-FIREWALL .*DROP\n/m, "");
  const { disagreements } = agreement(await planned(scenario), parseSave(open));
  expect(disagreements.map(reported).join("\n")).toMatch(/load-balancer .* pod: drop but untouched/);
});

test("excluded clients: their packets are to be left, and only theirs", async () => {
  const scenario = goldenScenario("01-clusterip");
  const flags = ["--exclude-cluster-cidr=10.144.154.0/24", "--excluded-frontends=excluded-clients"];
  const plan = await planned(scenario, { flags });
  const everybody = agreement(plan, parseSave(scenario.iptables)).disagreements.map(reported);
  expect(everybody).toEqual([expect.stringMatching(/^cluster-ip 10\.96\.67\.75:80 outside: untouched but /)]);
  const others = scenario.iptables.replace(
    /^(-A KUBE-SERVICES -d 10\.96\.67\.75.*)-j \S+$/m,
    (rule, packets: string) => `${packets.replace("-d", "-s 10.144.154.0/24 -d")}-j RETURN\n${rule}`,
  );
  expect(agreement(plan, parseSave(others)).disagreements.map(reported)).toEqual([]);
});

function reported({ frontend, source, wanted, found, problem }: PacketFinding): string {
  const seen = found === undefined ? `unknown: ${problem}` : waysText(found);
  return `${frontend.kind} ${frontend.address}:${frontend.port} ${source.class}: ${waysText(wanted)} but ${seen}`;
}
