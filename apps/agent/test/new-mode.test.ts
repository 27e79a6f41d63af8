import { settled, VirtualClock } from "@fairlead/base/testing";
import type { AgentConfig } from "@fairlead/config";
import { ClusterState, type IPFamily, type NodePlan } from "@fairlead/core";
import { filterSettings } from "@fairlead/intake";
import {
  FakeConntrack,
  FakeDevices,
  FakeIptables,
  FakeNfacct,
  FakeNodeAddresses,
  FakeRouting,
  FakeSysctl,
  FakeTracking,
} from "@fairlead/kernel/fake";
import { endpointSlice, node, service, serviceCIDR } from "@fairlead/testkit";
import { expect, test } from "vitest";
import type { Kernel } from "../src/kernel.ts";
import { createMetrics } from "../src/metrics/metrics.ts";
import { metricsFollower } from "../src/metrics/sync-metrics.ts";
import { modes } from "../src/modes/index.ts";
import { leftoversFollower } from "../src/modes/leftovers.ts";
import { runAgent } from "../src/run/run-agent.ts";
import { cleanUp } from "../src/start/action.ts";
import { prepareNode } from "../src/start/node.ts";
import { fakeIpvs } from "./support/fake-ipvs.ts";
import { memoryMode } from "./support/memory-mode.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf } from "./support/running-agent.ts";
import { ScriptedSource } from "./support/scripted-source.ts";

// The dry proof of docs/architecture.md, "Adding a backend": the one file is support/memory-mode.ts, the one row is
// `all`.
const memory = new Map<IPFamily, readonly string[]>();
const nodes = new Map<IPFamily, NodePlan>();
const all = [...modes, memoryMode(memory, nodes)];

/** A node without iptables: whoever asks for it is noted. */
function nodeWithoutIptables(asked: string[]): Kernel {
  const missing = (what: string) => async (family: IPFamily) => {
    asked.push(`${what} ${family}`);
    throw new Error("iptables is not installed");
  };
  return {
    iptables: missing("to serve with"),
    iptablesInUse: missing("to clean"),
    ...fakeIpvs({ supported: false }),
    addresses: new FakeNodeAddresses(),
    devices: new FakeDevices(),
    testFlowtable: async () => ({ outcome: "passed" }),
    conntrack: new FakeConntrack(),
    tracking: async () => new FakeTracking(),
    nfacct: new FakeNfacct({ supported: false }),
    sysctl: new FakeSysctl({ "net/ipv6/conf/all/disable_ipv6": 0 }),
    nftables: async () => {
      throw new Error("there is no nf_tables");
    },
    removeNftTables: async () => [],
    routing: new FakeRouting(),
    hasNftTable: async () => false,
    sourceAddress: async () => undefined,
  };
}

/** `mode` is what the configuration names; that it accepts the name is not the agent's concern. */
function configFor(mode: string): AgentConfig {
  const { healthzBindAddress: _none, ...config } = configOf(["--state-dir=/dev/null/none"]);
  const metricsBindAddress = { address: "127.0.0.1", port: 0 };
  return { ...config, mode: mode as AgentConfig["mode"], [mode]: config.iptables, metricsBindAddress };
}

test("a mode that is one file and one row is chosen, opened, served, and never asked for iptables", async () => {
  const asked: string[] = [];
  const [clock, log, source] = [new VirtualClock(), recordedLog(), new ScriptedSource()];
  const config = configFor("memory");
  const filter = filterSettings(config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  const parts = await prepareNode({
    config,
    filter: filter.options,
    nodeName: "node-a",
    kernel: nodeWithoutIptables(asked),
    modes: all,
    openSource: async () => ({ source: () => source }),
    clock,
    log,
    machine: { cores: 1, hashSizeFile: "/dev/null" },
  });
  expect([...parts.backends.keys()]).toEqual(["IPv4", "IPv6"]);
  expect(asked).toEqual([]);

  const stop = new AbortController();
  const ended = runAgent(parts, stop.signal);
  await settled();
  const web = service("web", { clusterIPs: ["10.96.67.75"], ports: [{ port: 80 }] });
  const slice = {
    service: "web",
    family: "IPv4",
    ports: [{ port: 8080 }],
    endpoints: [{ address: "10.144.1.5" }],
  } as const;
  await source.put(node("node-a", { addresses: ["10.201.0.10"] }), web, endpointSlice("web-1", slice));
  await source.synced("services", "endpointSlices", "node");
  await clock.advance(1_000);
  expect(memory).toEqual(
    new Map([
      ["IPv4", ["default/web"]],
      ["IPv6", []],
    ]),
  );
  expect(nodes.get("IPv4")).not.toHaveProperty("serviceCIDRs");
  await source.put(serviceCIDR("kubernetes", ["10.96.0.0/12", "fd00:10:96::/108"]));
  await source.synced("serviceCIDRs");
  await clock.advance(1_000);
  expect(nodes.get("IPv4")?.serviceCIDRs).toEqual(["10.96.0.0/12"]);
  expect(nodes.get("IPv6")?.serviceCIDRs).toEqual(["fd00:10:96::/108"]);

  // What modes with iptables left is removed where there is iptables; here nothing can have been left.
  expect(asked).toEqual(["to clean IPv4", "to clean IPv6"]);
  expect(log.lines.filter(({ level }) => level === "error")).toEqual([]);
  expect(log.messages("warn").filter((line) => line.includes("stale"))).toEqual([]);
  stop.abort();
  await settled();
  await clock.advance(2_000);
  await ended;
});

test("a mode that cannot tell clients apart says what becomes of excluded-clients, once", async () => {
  const log = recordedLog();
  const config = configFor("memory");
  const filter = filterSettings(config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  await prepareNode({
    config,
    filter: { ...filter.options, excludedFrontends: "excluded-clients" },
    nodeName: "node-a",
    kernel: nodeWithoutIptables([]),
    modes: all,
    openSource: async () => ({ source: () => new ScriptedSource() }),
    clock: new VirtualClock(),
    log,
    machine: { cores: 1, hashSizeFile: "/dev/null" },
  });
  expect(log.messages("warn").filter((line) => line.includes("clients"))).toEqual([
    expect.stringMatching(/^memory mode cannot distinguish the clients of an address: .*cluster-ip/),
  ]);
});

test("its failures are counted under its name, as kube-proxy counts those of nftables mode", async () => {
  const { facts: mode } = memoryMode(memory);
  const metrics = createMetrics(new ClusterState(), { mode });
  const planner = { counts: () => ({ services: {}, endpointsExcluded: 0, noLocalEndpoints: {} }) as never };
  const follower = metricsFollower({ ...metrics, mode, planner, state: new ClusterState(), clock: new VirtualClock() });
  const error = new Error("no space");
  await follower.ran?.({
    family: "IPv6",
    plan: undefined as never,
    change: undefined,
    outcome: { kind: "failed", sync: "full", error, milliseconds: 1, retryIn: 1 },
  });
  follower.unmaintained?.("IPv4");
  const { text } = await metrics.text();
  expect(text).toContain('kubeproxy_sync_proxy_rules_memory_sync_failures_total{ip_family="IPv6"} 1');
  expect(text).toContain('kubeproxy_sync_proxy_rules_memory_cleanup_failures_total{ip_family="IPv4"} 1');
});

test("what it counts has a metric of its own, and no other mode's", async () => {
  const { facts: mode } = memoryMode(memory);
  const metrics = createMetrics(new ClusterState(), { mode });
  const counts = { services: {}, endpointsExcluded: 0, noLocalEndpoints: {} };
  const planner = { counts: () => counts as never };
  const state = new ClusterState();
  const follower = metricsFollower({ ...metrics, mode, planner, state, clock: new VirtualClock() });
  const objects = { groups: { total: 3, written: 1 }, unknown: { total: 7, written: 7 } };
  await follower.ran?.({
    family: "IPv4",
    plan: undefined as never,
    change: undefined,
    outcome: { kind: "synced", report: { kind: "full", objects }, milliseconds: 1 },
  });
  const { text } = await metrics.text();
  expect(text.match(/^fairlead_\w+_objects\{.*$/gm)).toEqual([
    'fairlead_refused_objects{ip_family="IPv4"} 0',
    'fairlead_memory_objects{kind="groups",ip_family="IPv4"} 3',
  ]);
  expect(text).not.toContain("kubeproxy_sync_proxy_rules_iptables_");
});

test("--cleanup removes what it left, though the node has no iptables", async () => {
  memory.set("IPv4", ["default/web"]);
  const log = recordedLog();
  await cleanUp(all, nodeWithoutIptables([]), log);
  expect(memory.size).toBe(0);
  expect(log.lines).toContainEqual(expect.objectContaining({ fields: { table: "memory" } }));
});

test("while it runs, rules that another mode left go", async () => {
  const rules = new FakeIptables({ family: "IPv4" });
  const kernel = { ...nodeWithoutIptables([]), iptablesInUse: async () => [rules] };
  await rules.meddle(
    '*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\nCOMMIT\n',
  );
  const { facts: mode } = memoryMode(memory);
  const log = recordedLog();
  const follower = leftoversFollower({ kernel, mode, removals: all, families: ["IPv4"], log });
  await follower.ran?.({
    family: "IPv4",
    plan: undefined as never,
    change: undefined,
    outcome: { kind: "synced", report: { kind: "full", objects: {} }, milliseconds: 1 },
  });
  expect([...rules.table("nat").chains.keys()].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
});
