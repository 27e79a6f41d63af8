import { toEnd } from "@fairlead/base";
import { parseSave } from "@fairlead/netfilter";
import { goldenScenario } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { blockedPackets, dryTables, factsOf, readersOf, withoutProxy } from "../../src/index.ts";
import { sideOf } from "../support/scenario.ts";

const scenario = goldenScenario("09-loadbalancer");
const NODE_ADDRESS = "10.201.0.10";
const environment = {
  localAddresses: [NODE_ADDRESS],
  outInterface: (to: string) => ([NODE_ADDRESS, "127.0.0.1"].includes(to) ? "lo" : "eth0"),
};

/** kube-proxy's rules with rules of others alongside: each is put in front of its chain. */
function rules(...others: readonly string[]) {
  const text = others.reduce((all, rule) => {
    const [table = "", line = ""] = rule.split(": ");
    return all.replace(new RegExp(`(\\*${table}\\n(?::.*\\n)*)`), `$1${line}\n`);
  }, scenario.iptables);
  return parseSave(text);
}

async function blocked(...others: readonly string[]) {
  const kernel = { ruleSet: rules(...others), environment };
  const { planned, config } = await sideOf(scenario, { mode: "nftables", flags: ["--nodeport-addresses=all"] });
  const plan = planned.planner.plan("IPv4");
  const unproxied = withoutProxy(kernel);
  const nftables = toEnd(dryTables(plan, { mode: "nftables", config }));
  const { groups, node } = plan;
  const after = { ...unproxied, nftables };
  const semantics = factsOf("iptables").semantics;
  const request = { groups: groups.values(), node, before: kernel, after, nodeAddress: NODE_ADDRESS, semantics };
  return blockedPackets(request);
}

describe("a kernel without its proxy", () => {
  test("kube-proxy's chains and the jumps to them go, everyone else's rules stay", () => {
    const ruleSet = rules("filter: -A INPUT -p tcp -m tcp --dport 22 -j ACCEPT", "nat: -A OUTPUT -j KUBE-SERVICES");
    const { ruleSet: left } = withoutProxy({ ruleSet, environment });
    const chains = [...left.values()].flatMap((table) => [...table.chains.keys()]);
    expect(chains.filter((name) => name.startsWith("KUBE-"))).toEqual(
      chains.filter((name) => /^KUBE-(?:FIREWALL|KUBELET-CANARY|IPTABLES-HINT)$/.test(name)),
    );
    expect(
      left
        .get("filter")
        ?.chains.get("INPUT")
        ?.rules.map(({ target }) => target),
    ).toEqual([{ kind: "accept" }, { kind: "jump", chain: "KUBE-FIREWALL" }]);
    expect(left.get("nat")?.chains.get("OUTPUT")?.rules).toEqual([]);
  });
});

describe("rules that read a proxy's chains", () => {
  test("its own jumps, kubelet's chains and chains that only begin alike are none", () => {
    expect(readersOf(rules())).toEqual([]);
    expect(
      readersOf(
        parseSave("*filter\n:INPUT ACCEPT [0:0]\n:KUBE-ROUTER-INPUT - [0:0]\n-A INPUT -j KUBE-ROUTER-INPUT\nCOMMIT\n"),
      ),
    ).toEqual([]);
  });

  test("a jump without its comment, and a set of ipvs mode, are", () => {
    const found = readersOf(
      rules(
        "filter: -A INPUT -p tcp -j KUBE-NODEPORTS",
        "filter: -A FORWARD -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT",
      ),
    );
    expect(found.map(({ where }) => where).sort()).toEqual(["filter FORWARD", "filter INPUT"]);
  });
});

describe("packets that others' rules stop in nftables mode only", () => {
  test("none where no other program has rules", async () => {
    expect(await blocked()).toEqual([]);
  });

  test("a FORWARD policy of DROP: KUBE-FORWARD accepts what iptables mode masquerades", async () => {
    const found = await blocked("filter: :FORWARD DROP [0:0]");
    expect(found.length).toBeGreaterThan(0);
    for (const { finding } of found) expect([...(finding.found?.keys() ?? [])]).toEqual(["drop"]);
  });

  test("what is stopped now as well is no change", async () => {
    expect(await blocked("filter: -A FORWARD -p tcp -j DROP")).toEqual([]);
  });
});
