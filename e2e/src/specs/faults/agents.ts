/** Agents that are killed, stopped, or whose clock steps. */

import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterNode, ClusterShape, NodeProxy } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectNoAlarm, expectUntouched, requireLogged } from "../expect.ts";
import { needsExcluded, openOwners } from "../multi-cni/untouched.ts";
import { KUBE_PROXY, lackingKubeProxy } from "../operator.ts";
import { able, needs, onlyIn, type Scene, type Spec } from "../spec.ts";
import {
  each,
  expectLate,
  figures,
  openStage,
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

/** Agents cannot remember the owner of a service that has no endpoints. */
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

export const agents: readonly Spec[] = [killed, frozen, diskFull];

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

const OF_BOTH_PROXIES = { suite: "swap", eachFamily: false } as const;

/** Long enough for the slowest start in a guest. */
const LONGEST_MS = 300_000;

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
        // What goes of the mode before does not belong to its rules.
        await each(scene, (node) => expectNoAlarm(node, logs.get(node)));
      }
      return figures(together(seen));
    },
  };
}

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

const withKubeProxy: Spec = {
  ...swap("Fairlead, kube-proxy and Fairlead again in the same mode, without a failed request", (mode) => [
    ["kube-proxy", { mode, kubeProxy: KUBE_PROXY }],
    ["Fairlead", { mode }],
  ]),
  unfit: (shape) => needsProcesses(shape) ?? lackingKubeProxy(shape),
};

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
