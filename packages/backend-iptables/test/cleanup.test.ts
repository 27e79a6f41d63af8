import { FakeIptables } from "@fairlead/kernel/fake";
import { compareRuleSets, type Table } from "@fairlead/netfilter";
import { goldenScenarios } from "@fairlead/testkit";
import { clusterIPGroup, endpoints, planOf } from "@fairlead/testkit/plans";
import { describe, expect, test } from "vitest";
import { StaleChains } from "../src/commit.ts";
import { COUNTERS as counterNames, createIptablesBackend, removeIptablesMode } from "../src/index.ts";
import { RecordingPort } from "./support/recording-port.ts";

const web = clusterIPGroup("web", "10.96.0.10", endpoints(3));
const counters = async () => new Set(counterNames);

/** Kubelet's and others' chains, whose names look like ours. */
const OTHERS = `*mangle
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-IPTABLES-HINT - [0:0]
COMMIT
*filter
:KUBE-FIREWALL - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-ROUTER-FORWARD - [0:0]
:KUBE-POD-FW-ABCDEFGHIJKLMNOP - [0:0]
-A INPUT -j KUBE-FIREWALL
-A OUTPUT -j KUBE-FIREWALL
-A FORWARD -j KUBE-ROUTER-FORWARD
COMMIT
*nat
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-MARK-DROP - [0:0]
-A POSTROUTING -s 172.17.0.0/16 -j MASQUERADE
COMMIT
`;

describe.each(["nft", "legacy"] as const)("cleanup, %s", (variant) => {
  test("leaves what others have, and kubelet's rule in kubelet's chain", async () => {
    const fake = new FakeIptables({ family: "IPv4", variant, nfacct: new Set(counterNames) });
    await fake.meddle(OTHERS);
    const before = fake.ruleSet();
    const backend = createIptablesBackend(fake, { counters });
    await backend.sync(planOf([web, clusterIPGroup("none", "10.96.0.11", [])]));
    await backend.cleanup();
    const left = compareRuleSets(before, fake.ruleSet());
    expect(left).toMatchObject([{ kind: "rule-extra", chain: "KUBE-FIREWALL" }]);
  });

  test.each(goldenScenarios().map((scenario) => [scenario.name, scenario.iptables] as const))(
    "removes what kube-proxy left: %s",
    async (_, saved) => {
      const fake = new FakeIptables({ family: "IPv4", variant, nfacct: new Set(counterNames) });
      await fake.meddle(saved);
      await removeIptablesMode(fake);
      const chains = (["filter", "nat", "mangle"] as const).flatMap((table) => [...fake.table(table).chains.keys()]);
      expect(chains.filter((chain) => chain.startsWith("KUBE-"))).toEqual(["KUBE-FIREWALL"]);
    },
  );
});

test("cleanup where there is nothing writes nothing", async () => {
  const port = new RecordingPort(new FakeIptables({ family: "IPv6" }));
  await removeIptablesMode(port);
  expect(port.payloads).toEqual([]);
});

test("cleanup in batches from the top down", async () => {
  const groups = Array.from({ length: 300 }, (_, i) =>
    clusterIPGroup(`s${i}`, `10.96.${1 + (i >> 8)}.${i & 255}`, endpoints(2, { from: i * 2 })),
  );
  const port = new RecordingPort(new FakeIptables({ family: "IPv4", variant: "nft" }));
  const backend = createIptablesBackend(port);
  await backend.sync(planOf(groups));
  port.take();
  await backend.cleanup();
  expect(port.payloads.length).toBeGreaterThan(3);
  expect(await port.chains("nat")).toEqual(new Set(["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]));
});

test("chains that another mode uses stay, with the jumps to them", async () => {
  const fake = new FakeIptables({ family: "IPv4" });
  await createIptablesBackend(fake).sync(planOf([web]));
  const kept = new Set(["KUBE-POSTROUTING", "KUBE-MARK-MASQ"]);
  await removeIptablesMode(fake, { keep: (table: Table, chain) => table === "nat" && kept.has(chain) });
  expect([...fake.table("nat").chains.keys()].filter((chain) => chain.startsWith("KUBE-")).sort()).toEqual([
    "KUBE-MARK-MASQ",
    "KUBE-POSTROUTING",
  ]);
  expect(fake.table("nat").chains.get("POSTROUTING")?.rules).toHaveLength(1);
  expect(fake.table("nat").chains.get("OUTPUT")?.rules).toHaveLength(0);
});

test("a table that cannot be cleaned does not keep the others from it", async () => {
  const fake = new FakeIptables({ family: "IPv4" });
  await createIptablesBackend(fake).sync(planOf([web]));
  await fake.meddle("*nat\n:THEIRS - [0:0]\n-A THEIRS -j KUBE-MARK-MASQ\nCOMMIT\n");
  await expect(removeIptablesMode(fake)).rejects.toThrow(AggregateError);
  expect([...fake.table("filter").chains.keys()].filter((chain) => chain.startsWith("KUBE-"))).toEqual([
    "KUBE-FIREWALL",
  ]);
});

const names = (count: number) => Array.from({ length: count }, (_, index) => `KUBE-SEP-${index}`);

test("in a large cluster stale chains wait for the period to end, unless there are ten thousand", () => {
  const stale = new StaleChains(30_000);
  stale.add(names(1));
  expect(stale.due(0, true)).toEqual(names(1));
  stale.deleted(names(1), 0);
  stale.add(names(9_999));
  expect(stale.due(1, true)).toEqual([]);
  expect(stale.due(1, false)).toHaveLength(9_999);
  stale.add(names(10_000));
  expect(stale.due(1, true)).toHaveLength(10_000);
  stale.deleted(names(10_000), 1);
  expect(stale.due(30_002, true)).toEqual([]);
});
