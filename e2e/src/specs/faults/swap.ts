import type { ClusterNode, ClusterShape, NodeProxy } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectNoAlarm } from "../expect.ts";
import { onlyIn, type Scene, type Spec } from "../spec.ts";
import { each, figures, openStage, startTraffic, type TrafficSeen, withoutFailure } from "./stage.ts";

const COMMON = { suite: "swap", eachFamily: false, alone: true } as const;

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
    ...COMMON,
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
