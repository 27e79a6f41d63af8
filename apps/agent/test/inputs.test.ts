import { settled, VirtualClock } from "@fairlead/base/testing";
import { ClusterState, type NodeState, type Problem } from "@fairlead/core";
import { type Resource, subscriptions } from "@fairlead/intake";
import { FakeNodeAddresses } from "@fairlead/kernel/fake";
import { node, type RawObject } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { logSource, ProblemLog } from "../src/problems.ts";
import { followAddresses, type Prerequisite, Readiness, serviceAddressReason } from "../src/run/inputs.ts";
import { recordedLog } from "./support/fake-node.ts";
import {
  address,
  nodeA,
  type RunningAgent,
  type RunningAgentOptions,
  runningAgent,
  webNodePort as web,
} from "./support/running-agent.ts";

describe("readiness", () => {
  const bare = node("node-a", { addresses: [] });

  /** An agent whose lists are complete, the Node's with these in it. */
  async function listed(nodes: readonly RawObject[], options: RunningAgentOptions) {
    const one = await runningAgent(options);
    await settled();
    await one.source.put(web, ...nodes);
    await one.source.synced("services", "endpointSlices");
    return one;
  }

  const nodePortJumps = (one: RunningAgent) => one.nat().filter((rule) => rule.endsWith("-j KUBE-NODEPORTS"));

  describe("the first listing of the node's addresses", () => {
    const some = "--nodeport-addresses=10.201.0.0/24";

    test.each<[string, string]>([
      ["iptables", some],
      ["iptables", "--nodeport-addresses=all"],
      ["iptables", "--nodeport-addresses=primary"],
      ["iptables", "--nodeport-addresses=localhost"],
      ["ipvs", some],
      ["ipvs", "--nodeport-addresses=all"],
      ["userspace", "--nodeport-addresses=all"],
    ])("is waited for, however long it takes: %s %s", async (mode, flag) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const one = await listed([nodeA], { mode, flags: [flag], addressesAfter: promise });
      await one.source.synced("node");
      await one.clock.advance(120_000);
      expect(one.restores()).toBe(0);
      resolve();
      await settled();
      await one.clock.advance(1_000);
      expect(one.restores()).toBeGreaterThan(0);
    });
  });

  describe("the own Node", () => {
    /** The address that the kernel would send from is not the Node's. */
    const multiHomed = async (nodes: readonly RawObject[], ...flags: string[]) => {
      const one = await listed(nodes, { flags });
      one.addresses.add(address("192.0.2.7"));
      return one;
    };

    test("is waited for 30 s when its list does not come, as kube-proxy waits for its addresses", async () => {
      const one = await multiHomed([], "--nodeport-addresses=primary");
      await one.clock.advance(20_000);
      expect(one.restores()).toBe(0);
      await one.source.put(nodeA);
      await one.source.synced("node");
      await one.clock.advance(0);
      expect(nodePortJumps(one)).toEqual([expect.stringContaining("-d 10.201.0.10/32")]);
    });

    test("that has no address yet is waited for where primary needs one", async () => {
      const one = await multiHomed([bare], "--nodeport-addresses=primary");
      await one.source.synced("node");
      await one.clock.advance(20_000);
      expect(one.restores()).toBe(0);
      await one.source.put(nodeA);
      await one.clock.advance(0);
      expect(nodePortJumps(one)).toEqual([expect.stringContaining("-d 10.201.0.10/32")]);
    });

    test("that has no address yet is not waited for where nothing needs one", async () => {
      const one = await multiHomed([bare]);
      await one.source.synced("node");
      await one.clock.advance(0);
      expect(one.restores()).toBeGreaterThan(0);
    });

    test("that never comes is served without, with a line that says so", async () => {
      const one = await multiHomed([]);
      await one.clock.advance(29_999);
      expect(one.restores()).toBe(0);
      await one.clock.advance(1);
      expect(one.restores()).toBeGreaterThan(0);
      expect(one.log.messages("warn")).toEqual([
        "Node object not received; serving without its zone and with the kernel's source address",
      ]);
    });

    test("is not waited for in manifests, which may do without", async () => {
      const one = await multiHomed([], "--nodeport-addresses=primary", "--manifests=/dev/null/none");
      await one.source.synced("node");
      await one.clock.advance(0);
      expect(one.restores()).toBeGreaterThan(0);
    });
  });
});

test("without a default route: the first address for others on an interface that is up", async () => {
  const addresses = new FakeNodeAddresses([
    address("127.0.0.1", "host"),
    { ...address("192.0.2.1"), up: false },
    address("169.254.1.1", "link"),
    address("10.201.0.10"),
    address("10.201.0.11"),
  ]);
  const stop = new AbortController();
  const found: unknown[] = [];
  const sourceAddress = async (family: string) => (family === "IPv6" ? "fd00:201::10" : undefined);
  await followAddresses({ addresses, sourceAddress }, { signal: stop.signal }, (_all, ips) => {
    found.push(ips);
    stop.abort();
  });
  expect(found).toEqual([{ IPv4: "10.201.0.10", IPv6: "fd00:201::10" }]);
});

describe("intake", () => {
  function service(name: string, ports: unknown[]) {
    return { metadata: { namespace: "default", name }, spec: { clusterIP: "10.96.0.10", ports } };
  }

  function intake() {
    const log = recordedLog();
    const counted: Problem[] = [];
    const seen = { changes: 0, nodes: [] as (NodeState | undefined)[], synced: [] as Resource[] };
    const state = new ClusterState();
    const subscribed = subscriptions({
      state,
      problems: new ProblemLog(log, (problem) => counted.push(problem)),
      onChange: () => {
        seen.changes++;
      },
      onNode: (node) => seen.nodes.push(node),
      onSynced: (resource) => seen.synced.push(resource),
    });
    const give = (raw: unknown) => {
      const object = subscribed.services.decode(raw);
      if (object === undefined) return;
      void subscribed.services.onChange({ type: "upsert", key: `${object.namespace}/${object.name}`, object });
    };
    return { log, counted, seen, state, subscribed, give };
  }

  describe("of objects", () => {
    test("a problem is reported and counted once for an object, field and value, and again when it has changed", () => {
      const { give, log, counted } = intake();
      for (let i = 0; i < 3; i++) give(service("web", [{ port: 80 }, { name: "b", port: 70_000 }]));
      expect(counted).toHaveLength(1);
      give(service("web", [{ port: 80 }, { name: "b", port: 70_001 }]));
      give(service("other", [{ port: 80 }, { name: "b", port: 70_000 }]));
      expect(counted).toHaveLength(3);
      expect(log.lines[0]).toMatchObject({
        level: "warn",
        fields: { kind: "Service", object: "default/web", field: "spec.ports[1].port", value: "70000" },
      });
    });

    test("a hundred mistakes of one object are ten lines and one that counts the others", () => {
      const { give, log, counted } = intake();
      const ports = Array.from({ length: 100 }, (_, i) => ({ name: `p${i}`, port: 70_000 + i }));
      for (let i = 0; i < 3; i++) give(service("web", ports));
      // One for each port, and that none is left.
      expect(counted.length).toBeGreaterThanOrEqual(100);
      expect(log.lines).toHaveLength(11);
      expect(log.lines.at(-1)?.fields).toEqual({ kind: "Service", object: "default/web", more: counted.length - 10 });
    });

    test("objects without a name are reported once, however their lists alternate", () => {
      const { subscribed, log, counted } = intake();
      const labels = { "kubernetes.io/service-name": "web" };
      const nameless = (addressType: string) => ({ metadata: { namespace: "default", labels }, addressType });
      for (let list = 0; list < 3; list++) {
        for (const type of ["IPv4", "IPv5", "IPv8"]) subscribed.endpointSlices.decode(nameless(type));
        subscribed.services.decode({ spec: { clusterIP: "10.96.0.3" } });
      }
      const lines = log.lines.length;
      expect(lines).toBe(new Set(log.lines.map(({ fields }) => JSON.stringify(fields))).size);
      expect(counted).toHaveLength(lines);
    });

    test("of conflicts that are alike, and of many in one step, only some are lines", () => {
      const log = recordedLog();
      const counted: Problem[] = [];
      const problems = new ProblemLog(log, (problem) => counted.push(problem));
      const problem = (name: number, value: number) => ({
        kind: "Service" as const,
        namespace: "default",
        name: `s${name}`,
        field: "spec.externalIPs",
        value: `"TCP 198.51.100.${value} 80"`,
        reason: "is default/a/tcp's already",
      });
      problems.step(Array.from({ length: 12_000 }, (_, i) => problem(i, 1)));
      expect(counted).toHaveLength(12_000);
      expect(log.lines).toHaveLength(4);
      expect(log.lines.at(-1)?.fields).toMatchObject({ value: '"TCP 198.51.100.1 80"', more: 11_997 });
      log.lines.length = 0;
      problems.step(Array.from({ length: 12_000 }, (_, i) => problem(i, i)));
      expect(log.lines.length).toBeLessThanOrEqual(100);
      expect(log.lines.at(-1)?.fields).toEqual({ more: 11_901 });
    });

    test("the good part of a bad object is served", () => {
      const { give, state } = intake();
      give(service("web", [{ port: 80 }, { name: "b", port: 70_000 }]));
      expect(state.service("default/web")?.ports.map(({ port }) => port)).toEqual([80]);
    });

    test("only what changes something asks for a sync", () => {
      const { give, seen, subscribed, state } = intake();
      give(service("web", [{ port: 80 }]));
      give(service("web", [{ port: 80 }]));
      expect(seen.changes).toBe(1);
      void subscribed.services.onChange({ type: "delete", key: "default/web" });
      expect(seen.changes).toBe(2);
      expect(state.service("default/web")).toBeUndefined();
    });

    test("the node comes and goes", () => {
      const { subscribed, seen } = intake();
      const node = subscribed.node.decode({
        metadata: { name: "node-a", labels: { "topology.kubernetes.io/zone": "z1" } },
      });
      if (node === undefined) throw new Error("not decoded");
      void subscribed.node.onChange({ type: "upsert", key: "/node-a", object: node });
      void subscribed.node.onChange({ type: "delete", key: "/node-a" });
      void subscribed.node.onChange({ type: "synced" });
      expect(seen.nodes.map((one) => one?.zone)).toEqual(["z1", undefined]);
      expect(seen.synced).toEqual(["node"]);
    });
  });

  describe("readiness", () => {
    test("the Node is waited for 30 s after all else has come", async () => {
      const clock = new VirtualClock();
      const at: [number, readonly Prerequisite[]][] = [];
      const needs = ["services", "endpointSlices", "node", "nodeAddresses", "addresses"] as const;
      const one = new Readiness({ clock, needs, onReady: (without) => at.push([clock.monotonic(), without]) });
      one.known("services");
      one.known("endpointSlices");
      await clock.advance(600_000);
      one.known("addresses");
      await clock.advance(1_000);
      one.known("node");
      await clock.advance(600_000);
      one.known("nodeAddresses");
      expect(at).toEqual([[630_000, ["nodeAddresses"]]]);
    });
  });

  describe("an API server that is a Service", () => {
    const unknown = () => false;

    test.each([
      ["10.96.0.1", {}, "may be the address of a Service"],
      ["fd00:10:96::1", {}, "may be the address of a Service"],
      ["10.43.0.7", { KUBERNETES_SERVICE_HOST: "10.43.0.7" }, "is the Service address that pods are given"],
      ["192.0.2.10", {}, undefined],
      ["10.0.0.5", {}, undefined],
      ["api.example.com", {}, undefined],
    ])("%s", (address, env, reason) => {
      expect(serviceAddressReason(address, unknown, env)).toBe(reason);
    });

    test("a Service that was seen", () => {
      expect(serviceAddressReason("192.0.2.10", () => true, {})).toBe("is the address of a Service");
    });
  });

  test.each([
    ["unreachable", "API server cannot be reached; rules stay as they are, retrying"],
    ["refused", "API server refuses requests; rules stay as they are, retrying"],
    ["unreadable", "API server answers cannot be read; rules stay as they are, retrying"],
  ] as const)("requests that fail are %s: one line that says so", (problem, message) => {
    const log = recordedLog();
    const report = logSource({ log, serviceAddress: () => "is the address of a Service" });
    const more = { server: "https://10.96.0.1", address: "10.96.0.1", milliseconds: 0, error: "no", resources: [] };
    report({ type: "failing", problem, ...more });
    expect(log.lines).toMatchObject([{ level: "error", message }]);
    expect("hint" in (log.lines[0]?.fields ?? {})).toBe(problem === "unreachable");
  });
});
