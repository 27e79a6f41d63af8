import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type MigrateOptions, migrate } from "../../src/migrate/migrate.ts";
import type { ProxyName } from "../../src/migrate/state.ts";
import { assignments, type Fault, InstantClock, Killed, SimulatedCluster } from "./simulated-cluster.ts";

const PATIENCE = { lookMs: 1_000, waitMs: 60_000, holdMs: 5_000, verifyMs: 3_000 };

async function run(cluster: SimulatedCluster, goal: ProxyName, more: Partial<MigrateOptions> = {}) {
  const signal = new AbortController().signal;
  const options = { goal, verify: true, patience: PATIENCE, clock: new InstantClock(), onStep: () => {}, signal };
  return migrate(cluster, { ...options, ...more });
}

async function runKilled(cluster: SimulatedCluster, goal: ProxyName, kills: readonly number[]) {
  for (const after of kills) {
    cluster.killAfter = after;
    try {
      return await run(cluster, goal);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
  }
  cluster.killAfter = Number.POSITIVE_INFINITY;
  return run(cluster, goal);
}

const healthy = (nodes: number) =>
  new SimulatedCluster(Array.from({ length: nodes }, () => ["none", "fairlead"] as const));
const kills = fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 8 });
const fault = fc.constantFrom<Fault>("never ready", "crashes", "rules differ");

describe("from kube-proxy to Fairlead", () => {
  test("one node after the other, and nodes to come have Fairlead at the end", async () => {
    const cluster = healthy(3);
    expect(await run(cluster, "fairlead")).toEqual({ kind: "done" });
    expect(cluster.assigned).toEqual(["node-0 fairlead", "node-1 fairlead", "node-2 fairlead"]);
    expect(cluster.nodes.map((node) => cluster.serving(node))).toEqual(cluster.nodes.map(() => ["fairlead"]));
    expect([cluster.placement("kube-proxy"), cluster.placement("fairlead")]).toEqual(["labeled", "unless-other"]);
  });

  test("a rollout may take longer than one node may: each node that is done begins the time anew", async () => {
    const cluster = healthy(60);
    expect(await run(cluster, "fairlead")).toEqual({ kind: "done" });
    expect(cluster.assigned).toHaveLength(60);
  });

  test("killed anywhere, as often as you like, it comes to the same end, each node changed once", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), kills, async (nodes, points) => {
        const [killed, whole] = [healthy(nodes), healthy(nodes)];
        expect(await runKilled(killed, "fairlead", points)).toEqual(await run(whole, "fairlead"));
        expect(await killed.observe()).toEqual(await whole.observe());
        expect(killed.assigned).toEqual(whole.assigned);
      }),
    );
  });

  test("a node on which it fails is put back, and no further one is changed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(3), fault, kills, async (bad, kind, points) => {
        const cluster = new SimulatedCluster(
          [0, 1, 2, 3].map((at) => [at === bad ? kind : "none", "fairlead"] as const),
        );
        const outcome = await runKilled(cluster, "fairlead", points);
        expect(outcome).toEqual({
          kind: "stopped",
          reason: expect.stringMatching(`node-${bad}.*; kube-proxy serves it$`),
        });
        const served = cluster.nodes.map((node) => cluster.serving(node));
        expect(served).toEqual([0, 1, 2, 3].map((at) => [at < bad ? "fairlead" : "kube-proxy"]));
        expect(cluster.nodes[bad]?.problem).toBeDefined();
      }),
    );
  });

  test("a node that is not as it should be before its change stays as it is", async () => {
    const cluster = new SimulatedCluster([
      ["none", "fairlead"],
      ["rules differ", "kube-proxy"],
    ]);
    const outcome = await run(cluster, "fairlead");
    const reason = "node-1, before its change: default/web differs; kube-proxy serves it";
    expect(outcome).toEqual({ kind: "stopped", reason });
    expect(cluster.assigned).toEqual(["node-0 fairlead"]);
    expect(await run(cluster, "fairlead", { verify: false })).toEqual({ kind: "done" });
  });

  test("nodes that are not Ready are skipped and named; nodes to come still get kube-proxy", async () => {
    const cluster = new SimulatedCluster([
      ["none", "fairlead"],
      ["not Ready", "fairlead"],
      ["none", "fairlead"],
    ]);
    const reason = "not Ready and not changed to fairlead: node-1";
    expect(await run(cluster, "fairlead")).toEqual({ kind: "stopped", reason });
    expect(assignments(await cluster.observe())).toEqual({
      "node-0": "fairlead",
      "node-1": "kube-proxy",
      "node-2": "fairlead",
    });
    expect(cluster.placement("kube-proxy")).toBe("unless-other");
    for (const node of cluster.nodes) node.fault = "none";
    expect(await run(cluster, "fairlead")).toEqual({ kind: "done" });
  });

  test("a node that fails after it was well is put back before the next one is changed", async () => {
    const cluster = healthy(3);
    cluster.killAfter = 8;
    await expect(run(cluster, "fairlead")).rejects.toThrow(Killed);
    expect(cluster.nodes.map(({ proven }) => proven)).toEqual(["fairlead", undefined, undefined]);
    for (const node of cluster.nodes.slice(0, 1)) node.fault = "never ready";
    cluster.killAfter = Number.POSITIVE_INFINITY;
    const reason = "node-0: fairlead is not ready; kube-proxy serves it";
    expect(await run(cluster, "fairlead")).toEqual({ kind: "stopped", reason });
    expect(cluster.nodes.map((node) => cluster.serving(node))).toEqual([
      ["kube-proxy"],
      ["kube-proxy"],
      ["kube-proxy"],
    ]);
  });

  test("interrupted, it ends between two steps and puts nothing back", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), async (after) => {
        const cluster = healthy(2);
        const controller = new AbortController();
        let steps = 0;
        const onStep = () => {
          steps += 1;
          if (steps === after) controller.abort();
        };
        await run(cluster, "fairlead", { onStep, signal: controller.signal });
        expect(cluster.assigned.filter((one) => one.endsWith(" kube-proxy"))).toEqual([]);
        expect(await run(cluster, "fairlead")).toEqual({ kind: "done" });
      }),
    );
  });

  test("another run repairs what kubeadm's upgrade writes over", async () => {
    const cluster = healthy(2);
    await run(cluster, "fairlead");
    await cluster.place("kube-proxy", "everywhere");
    expect(await run(cluster, "fairlead")).toEqual({ kind: "done" });
    expect(cluster.nodes.map((node) => cluster.serving(node))).toEqual([["fairlead"], ["fairlead"]]);
  });

  test("a node that joined meanwhile is changed as well", async () => {
    const cluster = healthy(2);
    cluster.killAfter = 11;
    await expect(run(cluster, "fairlead")).rejects.toThrow(Killed);
    cluster.killAfter = Number.POSITIVE_INFINITY;
    cluster.nodes.push({ name: "node-x", fault: "none", of: "fairlead", pods: new Map() });
    expect(await run(cluster, "fairlead")).toEqual({ kind: "done" });
    expect(cluster.assigned.at(-1)).toBe("node-x fairlead");
  });
});

describe("back to kube-proxy", () => {
  test("from anywhere, whatever is wrong with Fairlead, and nothing is left", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 30 }), fault, kills, async (until, kind, points) => {
        const cluster = new SimulatedCluster([
          ["none", "fairlead"],
          [kind, "fairlead"],
          ["none", "fairlead"],
        ]);
        cluster.killAfter = until;
        await run(cluster, "fairlead", { verify: false }).catch(() => {});
        expect(await runKilled(cluster, "kube-proxy", points)).toEqual({ kind: "done" });
        expect(cluster.nodes.map((node) => cluster.serving(node))).toEqual(cluster.nodes.map(() => ["kube-proxy"]));
        expect([cluster.placement("kube-proxy"), cluster.placement("fairlead")]).toEqual(["everywhere", undefined]);
        expect(cluster.nodes.map(({ label, proven, problem }) => label ?? proven ?? problem)).toEqual([
          undefined,
          undefined,
          undefined,
        ]);
      }),
    );
  });

  test("where kube-proxy does not start, Fairlead keeps serving", async () => {
    const cluster = new SimulatedCluster([
      ["none", "kube-proxy"],
      ["never ready", "fairlead"],
    ]);
    for (const node of cluster.nodes) node.fault = "none";
    await run(cluster, "fairlead");
    for (const node of cluster.nodes.slice(0, 1)) node.fault = "never ready";
    const reason = "node-0: kube-proxy is not ready; fairlead serves it";
    expect(await run(cluster, "kube-proxy")).toEqual({ kind: "stopped", reason });
  });
});

describe("in another mode", () => {
  test("a node is held against kube-proxy's mode before its change, and against the new one after it", async () => {
    const cluster = healthy(2);
    cluster.mode = "nftables";
    expect(await run(cluster, "fairlead")).toEqual({ kind: "done" });
    expect(cluster.installedModes).toEqual(["nftables"]);
    expect(cluster.verified).toEqual(["node-0 kube-proxy", "node-0 fairlead", "node-1 kube-proxy", "node-1 fairlead"]);
  });

  test("where Fairlead serves already it is installed anew, and each node proven again", async () => {
    const cluster = healthy(3);
    await run(cluster, "fairlead");
    cluster.verified.length = 0;
    cluster.mode = "nftables";
    expect(await run(cluster, "fairlead")).toEqual({ kind: "done" });
    expect(cluster.verified).toEqual(["node-0 fairlead", "node-1 fairlead", "node-2 fairlead"]);
    expect(cluster.assigned).toHaveLength(3);
  });

  test("the way back leads through kube-proxy's mode: no node is given back in another one", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), async (nodes) => {
        const cluster = healthy(nodes);
        cluster.mode = "nftables";
        await run(cluster, "fairlead");
        cluster.mode = undefined;
        expect(await run(cluster, "kube-proxy")).toEqual({ kind: "done" });
        expect(cluster.installedModes).toEqual(["nftables", undefined]);
        expect(cluster.leftIn).toEqual(cluster.nodes.map(() => undefined));
        expect(cluster.nodes.map((node) => cluster.serving(node))).toEqual(cluster.nodes.map(() => ["kube-proxy"]));
      }),
    );
  });

  test("a node on which Fairlead does not come to serve in it is given back all the same", async () => {
    const cluster = healthy(2);
    cluster.mode = "nftables";
    await run(cluster, "fairlead");
    cluster.mode = undefined;
    for (const node of cluster.nodes) Object.assign(node, { fault: "never ready", of: "fairlead" });
    expect(await run(cluster, "kube-proxy")).toEqual({ kind: "done" });
    expect(cluster.nodes.map((node) => cluster.serving(node))).toEqual([["kube-proxy"], ["kube-proxy"]]);
  });

  test("killed anywhere, as often as you like, both ways come to the same end", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), kills, kills, async (nodes, there, back) => {
        const cluster = healthy(nodes);
        cluster.mode = "nftables";
        expect(await runKilled(cluster, "fairlead", there)).toEqual({ kind: "done" });
        cluster.mode = undefined;
        expect(await runKilled(cluster, "kube-proxy", back)).toEqual({ kind: "done" });
        expect(cluster.nodes.map((node) => cluster.serving(node))).toEqual(cluster.nodes.map(() => ["kube-proxy"]));
      }),
    );
  });
});
