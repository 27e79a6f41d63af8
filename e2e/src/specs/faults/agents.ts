/** Agents that are killed, stopped, or whose clock steps. */

import { setTimeout as sleep } from "node:timers/promises";
import { flushArgv, noteOthersRules } from "@fairlead/lab/faults";
import type { Client, ClusterNode, ClusterShape, NodeProxy } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectNoAlarm, expectUntouched, requireLogged } from "../expect.ts";
import { needsExcluded, openOwners } from "../multi-cni/untouched.ts";
import { able, needs, notIn, onlyIn, type Scene, type Spec } from "../spec.ts";
import {
  COMMON,
  each,
  expectLate,
  figures,
  openStage,
  PORTS,
  restoreAgents,
  startTraffic,
  type TrafficSeen,
  withoutFailure,
  withoutLoss,
} from "./stage.ts";

const killed = withoutLoss("agents killed with -9 and started again", async (scene) => {
  for (let round = 0; round < 3; round++) {
    await each(scene, async ({ agent }) => {
      await agent.kill();
      await agent.restart();
    });
  }
});

const frozen = withoutLoss("agents stopped for 20 s (SIGSTOP)", async (scene) => {
  await each(scene, ({ agent }) => agent.signal("SIGSTOP"));
  await sleep(20_000);
  await each(scene, ({ agent }) => agent.signal("SIGCONT"));
});

/** What agents cannot remember is who owned a service that has no endpoints. */
const diskFull = withoutLoss(
  "the disk for state files full: services come, and one of the other network without endpoints stays its own",
  async (scene) => {
    restoreAgents(scene);
    await each(scene, ({ agent }) => agent.restart({ stateDiskFull: true }));
    const { caller, atForeign, theirs } = await openOwners(scene);
    await expectLate(scene);
    await theirs.remove();
    await expectUntouched(caller, atForeign);
    await each(scene, (node) =>
      requireLogged(node, (line) => line.includes("Failed to save the ownership memory") && line.includes("ENOSPC")),
    );
  },
  {
    unfit: (shape) => needs("fill-disk")(shape) ?? needsExcluded(shape),
    about: ["agent", "endpoint-filter"],
  },
);

/** How often agents look whether their rules are there, and time to write them on a busy machine. */
const REPAIR_MS = 2_000 + 28_000;

const flushed: Spec = {
  ...COMMON,
  name: "tables flushed: whole again within a sync period",
  unfit: onlyIn(["iptables", "userspace"], "flushes the tables of iptables mode"),
  run: async (scene) => {
    const { ways, caller, by, atService } = await openStage(scene);
    const traffic = startTraffic(ways, scene.later);
    await sleep(1_000);
    await each(scene, async (node) => {
      scene.later(await noteOthersRules(node, scene.family));
      for (const table of ["nat", "filter"]) await node.run(flushArgv(scene.family, table));
    });
    await expectAnswers(caller, atService, { by });
    const seen = await traffic.stop();
    if (seen.longestGapMs > REPAIR_MS) {
      throw new Error(`wanted a gap of ${REPAIR_MS} ms at most; it was ${Math.round(seen.longestGapMs)} ms`);
    }
    return { ...figures(seen), "gap allowed": `${REPAIR_MS} ms` };
  },
};

const remembered: Spec = {
  ...COMMON,
  name: "session affinity outlasts a restart of the agents, and other endpoints that come and go",
  eachFamily: true,
  unfit: notIn(["userspace"], "in userspace mode the agent itself remembers clients"),
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const callers = await Promise.all([first, first, second].map((node) => scene.pod({ node })));
    const webs = await Promise.all([first, first, second, second].map((node) => scene.pod({ node, app: "web" })));
    const service = await scene.service("web", { sessionAffinity: "ClientIP", selector: { app: "web" }, ports: PORTS });
    const to = service.clusterIP;
    for (const caller of callers) await expectAnswered(caller, to, scene);
    const before = await Promise.all(callers.map((caller) => answererOf(caller, to)));
    const still = async (when: string) => {
      const now = await Promise.all(callers.map((caller) => answererOf(caller, to)));
      if (now.join() !== before.join()) throw new Error(`wanted ${before.join()} ${when}; came ${now.join()}`);
    };
    await each(scene, ({ agent }) => agent.restart());
    await still("after a restart");
    await scene.pod({ node: second, app: "web" });
    await webs.find(({ name }) => !before.includes(name))?.remove();
    await sleep(1_000);
    await still("beside endpoints that come and go");
  },
};

export const agents: readonly Spec[] = [killed, frozen, diskFull, flushed, remembered];

const HOUR_MS = 3_600_000;

const ofAgents = withoutLoss(
  "the agents' clock stepped an hour ahead, and two back",
  async (scene) => {
    restoreAgents(scene);
    await each(scene, ({ agent }) => agent.restart({ ownClock: true }));
    await each(scene, ({ agent }) => able(agent.stepClock)(HOUR_MS));
    await expectLate(scene, { name: "ahead" });
    await each(scene, ({ agent }) => able(agent.stepClock)(-HOUR_MS));
    await expectLate(scene, { name: "back" });
    await each(scene, (node) => requireLogged(node, isStepped));
  },
  { unfit: needs("step-clock") },
);

const ofKernel = withoutLoss(
  "the clock stepped by an hour, forth and back: changes still come through",
  async (scene) => {
    const [node] = scene.nodes;
    for (const [step, by] of ["+1 hour", "-1 hour"].entries()) {
      await node.run(["date", `--set=${by}`]);
      await expectLate(scene, { name: `late-${step}` });
    }
  },
  { unfit: ({ ownKernel }) => (ownKernel === true ? undefined : "the clock is the machine's") },
);

export const clock: readonly Spec[] = [ofAgents, ofKernel];

/** Who answers a client, which has to be one and the same. */
async function answererOf(from: Client, to: string): Promise<string> {
  const results = await from.send({ protocol: "TCP", to, port: 80, count: 12, parallel: 4, timeoutMs: 15_000 });
  const servers = new Set(results.map((result) => (result.kind === "answer" ? result.server : result.kind)));
  const [only = "", ...others] = servers;
  if (others.length > 0) throw new Error(`wanted one endpoint for ${from.name}; came ${[...servers].join(", ")}`);
  return only;
}

async function expectAnswered(from: Client, to: string, { until }: Scene): Promise<void> {
  await until(`an answer for ${from.name}`, () =>
    answererOf(from, to).then(
      (server) => (["lost", "refused", "error"].includes(server) ? server : undefined),
      (error: unknown) => String(error),
    ),
  );
}

/** Lines begin with the time, as klog writes it: `I1121 11:20:03.123456`. */
function isStepped(line: string): boolean {
  const [, month, day, hours, minutes] = /^[IWE](\d\d)(\d\d) (\d\d):(\d\d)/.exec(line) ?? [];
  if (month === undefined) return false;
  const now = new Date();
  const reported = new Date(now);
  reported.setMonth(Number(month) - 1, Number(day));
  reported.setHours(Number(hours), Number(minutes));
  return Math.abs(reported.getTime() - now.getTime()) > HOUR_MS / 2;
}

const OF_BOTH_PROXIES = { suite: "swap", eachFamily: false, alone: true } as const;

/** Long enough for the slowest start in a guest. */
const LONGEST_MS = 300_000;

/** Traffic at the cluster IP, the node port and over UDP while one proxy takes over from another on every node. */
async function takeOver(scene: Scene, stage: SwapSetup, proxy: NodeProxy): Promise<TrafficSeen> {
  const traffic = startTraffic(stage.ways, scene.later, LONGEST_MS);
  await expectAnswers(stage.caller, stage.atService, { by: stage.by });
  await each(scene, (node) => swapOn(node, proxy));
  await expectAnswers(stage.caller, stage.atService, { by: stage.by });
  const seen = await traffic.stop();
  withoutFailure(seen);
  if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${LONGEST_MS} ms`);
  return seen;
}

async function swapOn({ name, agent }: ClusterNode, proxy: NodeProxy): Promise<void> {
  if (agent.swap === undefined) throw new Error(`what proxies on ${name} cannot be swapped`);
  await agent.swap(proxy);
}

type SwapSetup = Awaited<ReturnType<typeof openStage>>;

async function stageWithUdp(scene: Scene): Promise<SwapSetup> {
  const stage = await openStage(scene);
  const ports = [{ port: 80, protocol: "UDP" }];
  const datagrams = await scene.service("datagrams", { selector: { app: "web" }, ports });
  const udp = { from: stage.caller, to: datagrams.clusterIP, port: 80, protocol: "UDP" } as const;
  await expectAnswers(stage.caller, udp, { by: stage.by });
  const [atService, , fromNode, atNode] = stage.ways;
  return { ...stage, ways: [atService, fromNode, atNode, udp].filter((way) => way !== undefined) };
}

/** @param turns what runs on the nodes, one after the other; at last it is what the cluster came with */
function swap(name: string, turns: (mode: string) => readonly (readonly [name: string, proxy: NodeProxy])[]): Spec {
  return {
    ...OF_BOTH_PROXIES,
    name,
    run: async (scene) => {
      const own = { mode: scene.cluster.mode };
      // Whatever becomes of it, others find the cluster as it was.
      scene.later(async () => void (await each(scene, (node) => swapOn(node, own))));
      const stage = await stageWithUdp(scene);
      const logs = new Map(await Promise.all(scene.nodes.map(async (node) => [node, await node.agent.log()] as const)));
      const seen: TrafficSeen[] = [];
      for (const [, proxy] of turns(own.mode)) {
        seen.push(await takeOver(scene, stage, proxy));
        // What goes of the mode before is none of its rules.
        await each(scene, (node) => expectNoAlarm(node, logs.get(node)));
      }
      return figures(together(seen));
    },
  };
}

/** All turns as one. */
function together(turns: readonly TrafficSeen[]): TrafficSeen {
  return {
    requests: turns.reduce((sum, { requests }) => sum + requests, 0),
    failures: turns.flatMap(({ failures }) => failures),
    longestGapMs: Math.max(...turns.map(({ longestGapMs }) => longestGapMs)),
    endedEarly: turns.some(({ endedEarly }) => endedEarly),
  };
}

function needsProcesses({ provider }: ClusterShape): string | undefined {
  return provider === "netns" ? undefined : "needs agents that are processes of the test ground";
}

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

const withKubeProxy: Spec = {
  ...swap("Fairlead, kube-proxy and Fairlead again in the same mode, without a failed request", (mode) => [
    ["kube-proxy", { mode, kubeProxy }],
    ["Fairlead", { mode }],
  ]),
  unfit: (shape) =>
    needsProcesses(shape) ?? (kubeProxy === "" ? "needs kube-proxy's program in FAIRLEAD_KUBE_PROXY" : undefined),
};

/** From a mode to iptables mode and back. */
function betweenModes(own: string): Spec {
  return {
    ...swap(`from ${own} mode to iptables mode and back, without a failed request`, () => [
      ["iptables mode", { mode: "iptables" }],
      [`${own} mode`, { mode: own }],
    ]),
    unfit: (shape) => needsProcesses(shape) ?? onlyIn([own], `needs a cluster in ${own} mode`)(shape),
  };
}

export const swaps: readonly Spec[] = [withKubeProxy, betweenModes("ipvs"), betweenModes("nftables")];
