import { toEnd } from "@fairlead/base";
import { parseSave } from "@fairlead/netfilter";
import { addressHex, type NftTable } from "@fairlead/netfilter/nft";
import { goldenScenario } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { compareTraffic, dryTables, type TrafficOutcome, waysText } from "../../src/index.ts";
import { planned, settingsOf } from "../support/scenario.ts";

const NODE_ADDRESS = "10.201.0.10";
const environment = {
  localAddresses: [NODE_ADDRESS],
  outInterface: (to: string) => (to === NODE_ADDRESS || to.startsWith("127.") ? "lo" : "eth0"),
};
const state = (text: string) => ({ ruleSet: parseSave(text), environment });
const compare = (before: string, after: string) => compareTraffic(state(before), state(after), "IPv4", NODE_ADDRESS);

function lines(before: string, after: string): string[] {
  const { changes } = compare(before, after);
  return changes.map(({ destination, from, before: old, after: now }) => {
    return `${destination} from ${from.join(", ")}: ${fateText(old)} → ${fateText(now)}`;
  });
}

function fateText(fate: TrafficOutcome): string {
  return "problem" in fate ? `? ${fate.problem}` : waysText(fate.ways);
}

describe("a plan, and a kernel in which a pod network masquerades", () => {
  const { iptables: plan } = goldenScenario("05-nodeport");
  const masquerades = "-A POSTROUTING -s 10.144.0.0/16 ! -d 10.144.0.0/16 -j MASQUERADE";
  const kernel = plan.replace(
    /^(-A POSTROUTING .*)$/m,
    `$1\n${masquerades}\n-A POSTROUTING -d 10.144.0.0/16 -j MASQUERADE`,
  );
  const sides = (kernelText: string) => [state(plan), state(kernelText)] as const;

  test("do the same, from either side, and it says how many are masqueraded", () => {
    const [before, after] = sides(kernel);
    const found = compareTraffic(before, after, "IPv4", NODE_ADDRESS, "before");
    expect(found.changes).toEqual([]);
    expect(found.masqueraded).toBeGreaterThan(0);
    expect(compareTraffic(after, before, "IPv4", NODE_ADDRESS, "after")).toEqual(found);
  });

  test("two kernels differ by it", () => {
    const [before, after] = sides(kernel);
    expect(compareTraffic(before, after, "IPv4", NODE_ADDRESS).changes).not.toEqual([]);
  });

  test("the proxy's own masquerading is not excused", () => {
    const [before, after] = sides(plan.replace(/^-A KUBE-MARK-MASQ .*\n/m, ""));
    expect(compareTraffic(before, after, "IPv4", NODE_ADDRESS, "before").changes).not.toEqual([]);
  });
});

describe("one rule in another way", () => {
  const { iptables } = goldenScenario("05-nodeport");

  test("a share: both frontends, all senders", () => {
    const found = lines(iptables, iptables.replace("0.50000000000", "0.25000000000"));
    expect(found.map((line) => line.split(":")[0])).toContain("tcp 10.96.1.5");
    expect(found.find((line) => line.startsWith("tcp node port 30105"))).toMatch(/50 %.*→ .*25 %/);
  });

  test("a frontend that is gone is untouched, and only that one", () => {
    const found = lines(iptables, iptables.replace(/^-A KUBE-SERVICES -d 10\.96\.1\.5.*\n/m, ""));
    expect(found).not.toEqual([]);
    for (const line of found) expect(line).toMatch(/^tcp 10\.96\.1\.5:80 from .* → untouched$/);
  });

  test("masquerading that is gone concerns those that were masqueraded", () => {
    const found = lines(iptables, iptables.replace(/^-A KUBE-MARK-MASQ .*\n/m, ""));
    const inside = found.filter((line) => line.startsWith("tcp 10.96.1.5:80"));
    expect(inside).toHaveLength(1);
    expect(inside[0]).toMatch(/from the node, elsewhere: .*masqueraded.* → [^m]*$/);
  });

  test("a drop for one CIDR concerns only that CIDR", () => {
    const found = lines(
      iptables,
      iptables.replace(/^COMMIT/m, "-A FORWARD -s 10.144.0.0/16 -d 10.144.0.0/16 -j DROP\nCOMMIT"),
    );
    for (const line of found) expect(line).toMatch(/from 10\.144\.0\.0\/16: .* → drop$/);
    expect(found.length).toBeGreaterThan(0);
  });
});

test("two recordings: what one has and the other has not", () => {
  const [before, after] = [goldenScenario("01-clusterip").iptables, goldenScenario("03-three-endpoints").iptables];
  const found = lines(before, after);
  expect(found.find((line) => line.startsWith("tcp 10.96.67.75:80"))).toMatch(/10\.144\.154\.71:\d+.* → untouched/);
  expect(found.find((line) => line.startsWith("tcp 10.96.1.3:80"))).toMatch(/untouched → .*33 %/);
  expect(found.some((line) => line.includes("10.96.0.1:443"))).toBe(false);
});

test("a set of nftables that stops what packets are translated to", async () => {
  const scenario = goldenScenario("05-nodeport");
  const plan = await planned(scenario, { mode: "nftables" });
  const [table] = toEnd(dryTables(plan.planner.plan("IPv4"), settingsOf(scenario.node, "nftables")));
  const unserved = table?.sets.get("cluster-ips");
  if (table === undefined || unserved === undefined) throw new Error("the plan has no set cluster-ips");
  const key = addressHex("10.144.1.5");
  const stopping = { ...unserved, elements: new Map([...unserved.elements, [key, { key }]]) };
  const stopped = { ...table, sets: new Map([...table.sets, [unserved.name, stopping]]) };
  const held = (one: NftTable) => ({ ruleSet: parseSave(""), nftables: [one], environment });
  const { changes } = compareTraffic(held(table), held(stopped), "IPv4", NODE_ADDRESS);
  expect(changes.flatMap(({ after }) => ("ways" in after ? [...after.ways.keys()] : []))).toContain("reject");
});
