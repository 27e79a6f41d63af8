import { iptablesFacts } from "@fairlead/backend-iptables";
import { settled, VirtualClock } from "@fairlead/base/testing";
import type { AgentConfig } from "@fairlead/config";
import {
  type Backend,
  ClusterState,
  type ForwardingPlan,
  type IPFamily,
  type ModeFacts,
  type NodePlan,
  type SyncReport,
} from "@fairlead/core";
import { FakeIptables, FakeNfacct } from "@fairlead/kernel/fake";
import type { IptablesPort } from "@fairlead/netfilter";
import { serviceCIDR } from "@fairlead/testkit";
import { expect, test } from "vitest";
import type { Kernel } from "../src/kernel.ts";
import { createMetrics } from "../src/metrics/metrics.ts";
import { metricsFollower } from "../src/metrics/sync-metrics.ts";
import { modes } from "../src/modes/index.ts";
import { leftoversFollower } from "../src/modes/leftovers.ts";
import { type Mode, watchRules } from "../src/modes/mode.ts";
import { runAgent } from "../src/run/run-agent.ts";
import { cleanUp } from "../src/start/action.ts";
import { prepareNode } from "../src/start/node.ts";
import { configOf, fakeIpvs, fakeKernel, filterOf, recordedLog, runOf, SYNCED } from "./support/fake-node.ts";
import { nodeA, ScriptedSource, slice, web } from "./support/running-agent.ts";

const FACTS: ModeFacts = {
  name: "memory",
  semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
  needs: { iptables: [], nodeAddresses: false, serviceCIDRs: true, kernelParts: [], sysctls: [] },
  keeps: {},
  objects: { rules: [], own: { kinds: ["groups"], help: "Service ports that are kept in memory" } },
  packetCounters: {},
  familiesAtOnce: true,
};

/** A mode that keeps each family's service ports in `memory`, and asks nothing of the node; `nodes` gets the rest. */
function memoryMode(memory: Map<IPFamily, readonly string[]>, nodes?: Map<IPFamily, NodePlan>): Mode {
  return {
    facts: FACTS,
    async open() {},
    serve: async ({ families }) => ({
      backends: new Map(families.map((family) => [family, memoryBackend(memory, nodes)])),
      familiesAtOnce: FACTS.familiesAtOnce,
    }),
    async removeTables() {
      memory.clear();
      return ["memory"];
    },
  };
}

function memoryBackend(memory: Map<IPFamily, readonly string[]>, nodes?: Map<IPFamily, NodePlan>): Backend {
  const keep = async (plan: ForwardingPlan): Promise<SyncReport> => {
    const names = Array.from(plan.groups.values(), ({ name }) => name);
    memory.set(plan.family, names);
    nodes?.set(plan.family, plan.node);
    return { kind: "full", objects: { groups: { total: names.length, written: names.length } } };
  };
  return {
    semantics: FACTS.semantics,
    sync: keep,
    apply: keep,
    difference: async ({ family }) => (memory.has(family) ? undefined : { what: ["everything"], repaired: false }),
    cleanup: async () => memory.clear(),
  };
}

// The dry proof of docs/architecture.md, "Adding a backend": the one file is `memoryMode`, the one row is in
// `all`.
const memory = new Map<IPFamily, readonly string[]>();
const nodes = new Map<IPFamily, NodePlan>();
const all = [...modes, memoryMode(memory, nodes)];

/** A node without iptables: each request for it is noted. */
function nodeWithoutIptables(asked: string[]): Kernel {
  const missing = (what: string) => async (family: IPFamily) => {
    asked.push(`${what} ${family}`);
    throw new Error("iptables is not installed");
  };
  const { kernel } = fakeKernel({
    iptables: missing("to serve with"),
    iptablesInUse: missing("to clean"),
    ...fakeIpvs({ supported: false }),
    nfacct: new FakeNfacct({ supported: false }),
    nftables: async () => {
      throw new Error("there is no nf_tables");
    },
  });
  return kernel;
}

function prepared(parts: Pick<Parameters<typeof prepareNode>[0], "log"> & Partial<Parameters<typeof prepareNode>[0]>) {
  const config = configFor("memory");
  return prepareNode({
    config,
    filter: filterOf(config),
    nodeName: "node-a",
    kernel: nodeWithoutIptables([]),
    modes: all,
    openSource: async () => ({ source: () => new ScriptedSource() }),
    clock: new VirtualClock(),
    machine: { cores: 1, hashSizeFile: "/dev/null" },
    ...parts,
  });
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
  const kernel = nodeWithoutIptables(asked);
  const parts = await prepared({ kernel, openSource: async () => ({ source: () => source }), clock, log });
  expect([...parts.backends.keys()]).toEqual(["IPv4", "IPv6"]);
  expect(asked).toEqual([]);

  const stop = new AbortController();
  const ended = runAgent(parts, stop.signal);
  await settled();
  await source.put(nodeA, web, slice("web", "10.144.1.5"));
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

test("a mode that cannot distinguish clients says what becomes of excluded-clients, once", async () => {
  const log = recordedLog();
  const filter = { ...filterOf(configFor("memory")), excludedFrontends: "excluded-clients" } as const;
  await prepared({ filter, log });
  expect(log.messages("warn").filter((line) => line.includes("clients"))).toEqual([
    expect.stringMatching(/^memory mode cannot distinguish the clients of an address: .*cluster-ip/),
  ]);
});

function measured() {
  const { facts: mode } = memoryMode(memory);
  const [metrics, state] = [createMetrics(new ClusterState(), { mode }), new ClusterState()];
  const planner = { counts: () => ({ services: {}, endpointsExcluded: 0, noLocalEndpoints: {} }) as never };
  return { metrics, follower: metricsFollower({ ...metrics, mode, planner, state, clock: new VirtualClock() }) };
}

test("its failures are counted under its name, as kube-proxy counts those of nftables mode", async () => {
  const { metrics, follower } = measured();
  const error = new Error("no space");
  await follower.ran?.(runOf({ kind: "failed", sync: "full", error, milliseconds: 1, retryIn: 1 }, "IPv6"));
  follower.unmaintained?.("IPv4");
  const { text } = await metrics.text();
  expect(text).toContain('kubeproxy_sync_proxy_rules_memory_sync_failures_total{ip_family="IPv6"} 1');
  expect(text).toContain('kubeproxy_sync_proxy_rules_memory_cleanup_failures_total{ip_family="IPv4"} 1');
});

test("what it counts has a metric of its own, and no other mode's", async () => {
  const { metrics, follower } = measured();
  const objects = { groups: { total: 3, written: 1 }, unknown: { total: 7, written: 7 } };
  await follower.ran?.(runOf({ kind: "synced", report: { kind: "full", objects }, milliseconds: 1 }));
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
  await follower.ran?.(runOf(SYNCED));
  expect([...rules.table("nat").chains.keys()].filter((chain) => chain.startsWith("KUBE-"))).toEqual([]);
});

test("rules that went are looked for twice a second, in both families, until the agent ends", async () => {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const gone = new Set<string>();
  const portOf = (family: string): Pick<IptablesPort, "lost"> => ({
    async lost(chains) {
      asked.push(`${family}: ${Object.keys(chains)}`);
      expect(chains.nat).toEqual(expect.arrayContaining(["PREROUTING", "KUBE-SERVICES"]));
      return gone.delete(family);
    },
  });
  const ports = new Map([["IPv4", portOf("IPv4")] as const, ["IPv6", portOf("IPv6")] as const]);
  let changed = 0;
  const stop = new AbortController();
  const watching = watchRules(ports, iptablesFacts, clock)({ changed: () => void changed++ }, stop.signal);
  await clock.advance(500);
  await settled();
  expect(asked).toEqual(["IPv4: nat,filter", "IPv6: nat,filter"]);
  expect(changed).toBe(0);
  gone.add("IPv6");
  await clock.advance(500);
  await settled();
  expect(changed).toBe(1);
  stop.abort();
  await watching;
});
