import { toEnd } from "@fairlead/base";
import { parseSave, type RuleSet } from "@fairlead/netfilter";
import { goldenScenario, NODE_A, NODE_B, workload } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import {
  agreementOf,
  dryRun,
  dryTables,
  factsOf,
  type PacketFinding,
  type PlannedNode,
  restored,
  trafficFindings,
  waysText,
} from "../../src/index.ts";
import { planned, settingsOf } from "../support/scenario.ts";

const [NODE_ADDRESS, OTHER_ADDRESS] = ["10.201.0.10", "fd00:201::10"];
const environment = {
  localAddresses: [NODE_ADDRESS, OTHER_ADDRESS],
  outInterface: (to: string) => ([NODE_ADDRESS, OTHER_ADDRESS, "127.0.0.1", "::1"].includes(to) ? "lo" : "eth0"),
};

function agreement({ planner, mode }: PlannedNode, ruleSet: RuleSet) {
  const { groups, node } = planner.plan("IPv4");
  return agreementOf(groups.values(), node, { ruleSet, environment }, NODE_ADDRESS, factsOf(mode).semantics);
}

test.each(["iptables", "nftables"] as const)(
  "%s mode does as planned with endpoints at nodes' addresses",
  async (mode) => {
    const { node } = goldenScenario("01-clusterip");
    const { objects } = workload(1, { endpoints: [NODE_A, NODE_B], nodePort: true });
    const { planner } = await planned({ objects, node }, { mode });
    const plan = planner.plan("IPv4");
    const settings = settingsOf(node, mode);
    const nftables = toEnd(dryTables(plan, settings));
    const texts = nftables.length > 0 ? [] : await dryRun(plan, settings);
    const rules = texts.flatMap(({ argv: [program], pieces }) => (program === "iptables-restore" ? pieces : []));
    const kernel = { ruleSet: toEnd(restored(rules, "IPv4")), nftables, environment };
    const { semantics } = factsOf(mode);
    const found = toEnd(trafficFindings(plan.groups.values(), plan.node, kernel, NODE_ADDRESS, semantics));
    expect(found.map(({ where, what }) => `${where}: ${what}`)).toEqual([]);
  },
);

test("a match that is not known: it depends on that, and is no disagreement", async () => {
  const scenario = goldenScenario("09-loadbalancer");
  const damaged = scenario.iptables.replace(/(-A KUBE-SERVICES )(-d 203)/, "$1-m strange --odd $2");
  const { disagreements, unknown } = agreement(await planned(scenario), parseSave(damaged));
  expect(disagreements).toEqual([]);
  expect(unknown.map(({ problem }) => problem).join()).toContain("strange");
  expect(new Set(unknown.map(({ frontend }) => frontend.kind))).toEqual(new Set(["load-balancer"]));
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

test("excluded clients: their packets are to be left, and only theirs", async () => {
  const scenario = goldenScenario("01-clusterip");
  const flags = ["--exclude-cluster-cidr=10.144.154.0/24", "--excluded-frontends=excluded-clients"];
  const plan = await planned(scenario, { flags });
  const allClients = agreement(plan, parseSave(scenario.iptables)).disagreements.map(reported);
  expect(allClients).toEqual([expect.stringMatching(/^cluster-ip 10\.96\.67\.75:80 outside: untouched but /)]);
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
