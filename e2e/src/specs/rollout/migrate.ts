/** What an administrator does during a rollout, and the load on the cluster meanwhile. */

import { CommandError, type RunOptions } from "@fairlead/kernel";
import { modeNamed } from "@fairlead/lab/modes";
import type { Cluster, ClusterNode, WholeKubernetes } from "@fairlead/lab/provider/cluster";
import { FAIRLEAD_IMAGE } from "@fairlead/lab/provider/kind/fairlead";
import { answerOf, requireTool, type ToolResult, tool } from "@fairlead/lab/tools/page-reader";
import { parseDocument } from "yaml";
import { expectAnswers, until } from "../expect.ts";
import { startTraffic, withoutFailure } from "../faults/stage.ts";
import { backToFairlead, kubectlSystem, needsKubelets, removeProxy, whole } from "../operator.ts";
import { nearAndFar, onlyIn, type Scene, type ServiceHandle, type Spec } from "../spec.ts";

const MIGRATE_MS = 8 * 60_000;
/** Well below the time after which a run is taken for dead. */
const REFUSED_MS = 30_000;
const HOLD = ["--hold=2", "--timeout=120"];
/** A run that is killed after its first node does not come to the second before. */
const LONG_HOLD = ["--hold=300", "--timeout=120"];
const IMAGE = ["--apply", `--image=${FAIRLEAD_IMAGE}`];
const APPLY = [...IMAGE, ...HOLD];

const COMMON = { suite: "rollout", eachFamily: false, unfit: needsKubelets } as const;

const migrated: Spec = {
  ...COMMON,
  name: "fairlead migrate: kube-proxy → Fairlead, one run at a time, killed half way and gone on with, another configuration, and back, under load",
  run: async (scene, cluster) => {
    const kubernetes = whole(cluster);
    await withKubeProxy(cluster, scene.later);
    const traffic = await startLoad(scene);
    await killedHalfWay(cluster, [...IMAGE, ...LONG_HOLD], async () => (await labeled(whole(cluster))).length > 0);
    await migrate(cluster, ["--apply", ...HOLD]);
    if ((await labeled(kubernetes)).length !== cluster.nodes.length + 1) throw new Error("not every node was changed");
    await expectServed(scene, "migrated");
    await changeConfiguration(cluster, () => migrate(cluster, ["--apply", ...HOLD]), MIGRATE_MS);
    await expectServed(scene, "changed");
    await migrate(cluster, ["--revert", ...HOLD]);
    await expectServed(scene, "reverted");
    const seen = await traffic.stop();
    const reported = withoutFailure(seen);
    if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
    return reported;
  },
};

/**
 * A service without clients loses a rule again and again, on the second worker from when it has Fairlead; an agent that
 * would repair that at once is stopped.
 */
const stopped: Spec = {
  ...COMMON,
  name: "fairlead migrate: a node that fails its verification is put back, and nothing more is changed, under load",
  run: async (scene, cluster) => {
    const [first, second] = scene.nodes;
    await withKubeProxy(cluster, scene.later);
    const traffic = await startLoad(scene);
    const victim = await expectServed(scene, "victim");
    const ended = new AbortController();
    let isStopped = false;
    const isTheirs = async () => (await labeled(whole(cluster))).includes(`node/${second.name}`);
    const damaged = until(
      `${second.name} to be changed, and damaged until the run ends`,
      async () => {
        if ((await isTheirs()) && (await isReady(cluster, second))) {
          if (repairsAtOnce(cluster) && !isStopped) await second.agent.signal("SIGSTOP");
          isStopped = true;
          await deleteService(scene, second, victim);
        }
        return ended.signal.aborted ? undefined : "under way";
      },
      MIGRATE_MS,
    );
    const output = await fairleadEnds(1, cluster, ["migrate", ...APPLY], { timeoutMs: MIGRATE_MS }).finally(() =>
      ended.abort(),
    );
    await damaged;
    const wanted = new RegExp(`^Stopped: ${second.name}, served by fairlead: .*victim.*; kube-proxy serves it$`, "m");
    if (!wanted.test(output)) throw new Error(`wanted ${wanted}, came:\n${output}`);
    if ((await labeled(whole(cluster))).join() !== `node/${first.name}`)
      throw new Error(`wanted Fairlead on ${first.name} only, came ${await labeled(whole(cluster))}`);
    const problem = await fairleadEnds(0, cluster, ["migrate"], { timeoutMs: MIGRATE_MS });
    if (!new RegExp(`^${second.name} .* kube-proxy +${second.name}, served by`, "m").test(problem))
      throw new Error(`wanted ${second.name} with its problem, came:\n${problem}`);
    await expectServed(scene, "afterwards");
    return withoutFailure(await traffic.stop());
  },
};

const TO_NFTABLES = ["--to-mode", "nftables"];

const migratedMode: Spec = {
  ...COMMON,
  name: "fairlead migrate --to-mode nftables: node by node, killed half way and gone on with, and back to kube-proxy, under load",
  about: ["cli"],
  unfit: (shape) => onlyIn(["iptables"], "nodes begin in iptables mode")(shape) ?? needsKubelets(shape),
  run: async (scene, cluster) => {
    await withKubeProxy(cluster, scene.later);
    await expectServed(scene, "before");
    const traffic = await startLoad(scene);
    const report = await fairlead(cluster, ["migrate", ...TO_NFTABLES], { timeoutMs: MIGRATE_MS });
    if (!/^From iptables to nftables mode: /m.test(report.out))
      throw new Error(`wanted a report; came:\n${report.out}`);
    const toKill = [...TO_NFTABLES, ...IMAGE, ...LONG_HOLD];
    await killedHalfWay(cluster, toKill, async () => (await modesOf(cluster)).includes("nftables"));
    if (!(await modesOf(cluster)).includes("iptables")) throw new Error("wanted a node that has not changed");
    await migrate(cluster, [...TO_NFTABLES, ...APPLY]);
    await modesAre(cluster, "nftables");
    await expectServed(scene, "in-nftables");
    await migrate(cluster, ["--revert", ...HOLD]);
    await modesAre(cluster, "iptables");
    await expectServed(scene, "back");
    const seen = await traffic.stop();
    if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
    return withoutFailure(seen);
  },
};

/** The command line tool as administrators use it. */
export const migrations: readonly Spec[] = [migrated, stopped, migratedMode];

async function withKubeProxy(cluster: Cluster, later: (undo: () => Promise<void>) => void): Promise<void> {
  const kubernetes = whole(cluster);
  later(() => backToFairlead(cluster));
  later(() => migrate(cluster, ["--revert", "--skip-verify", ...HOLD]));
  await kubernetes.addKubeProxy();
  await removeProxy(kubernetes, "fairlead");
}

async function migrate(
  cluster: Cluster,
  args: readonly string[],
  signal = AbortSignal.timeout(MIGRATE_MS),
): Promise<void> {
  await fairleadEnds(0, cluster, ["migrate", ...args], { timeoutMs: MIGRATE_MS, signal });
}

/** Another run ends without a change: one is under way. */
async function refused(cluster: Cluster, args: readonly string[]): Promise<void> {
  const said = await fairlead(cluster, ["migrate", ...args], { timeoutMs: REFUSED_MS }).then(
    ({ out }) => out,
    (error: unknown) => (error instanceof CommandError && error.exitCode === 3 ? error.stderr : Promise.reject(error)),
  );
  const wanted = /another run is changing this cluster: process \d+ on /;
  if (!wanted.test(said)) throw new Error(`wanted ${wanted}, came:\n${said}`);
}

/** Killed as soon as the first node has changed, and another run was refused. */
async function killedHalfWay(
  cluster: Cluster,
  args: readonly string[],
  hasChanged: () => Promise<boolean>,
): Promise<void> {
  const kill = new AbortController();
  const run = migrate(cluster, args, kill.signal).then(
    () => "it came to its end",
    (error: Error) => error.message,
  );
  const changed = until(
    "the first node's change",
    async () => ((await hasChanged()) ? undefined : "none yet"),
    MIGRATE_MS / 2,
  );
  const ended = await Promise.race([run, changed.then(() => undefined)]);
  if (ended !== undefined) throw new Error(`wanted a run to kill, but: ${ended}`);
  await refused(cluster, args);
  kill.abort();
  await run;
}

function modesOf({ nodes }: Pick<Cluster, "nodes">): Promise<readonly string[]> {
  return Promise.all(
    nodes.map(({ agent }) =>
      agent.get("/proxyMode").then(
        (mode) => mode.trim(),
        () => "",
      ),
    ),
  );
}

async function modesAre(cluster: Cluster, mode: string): Promise<void> {
  await until(`every node in ${mode} mode`, async () => {
    const modes = await modesOf(cluster);
    return modes.every((one) => one === mode) ? undefined : modes.join();
  });
}

async function isReady(cluster: Cluster, { name }: ClusterNode): Promise<boolean> {
  const selector = ["--selector=app.kubernetes.io/name=fairlead", `--field-selector=spec.nodeName=${name}`];
  const ready = "--output=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}";
  return (await kubectlSystem(whole(cluster), "get", "pods", ...selector, ready)).stdout === "True";
}

async function labeled({ kubectl }: WholeKubernetes): Promise<readonly string[]> {
  const { stdout } = await kubectl(["get", "nodes", "--selector=fairlead.dev/proxy=fairlead", "--output=name"]);
  return stdout.split("\n").filter(Boolean);
}

export async function fairlead(
  cluster: Pick<Cluster, "kubernetes" | "apiServer">,
  [command, ...args]: readonly [command: string, ...args: string[]],
  options: RunOptions,
): Promise<ToolResult> {
  await requireTool();
  const { kubeconfig } = whole(cluster);
  const argv = [process.execPath, tool, command, `--kubeconfig=${kubeconfig}`, ...args] as const;
  return answerOf(() => cluster.apiServer.run(argv, options));
}

async function fairleadEnds(
  code: ToolResult["code"],
  cluster: Pick<Cluster, "kubernetes" | "apiServer">,
  args: readonly [command: string, ...args: string[]],
  options: RunOptions,
): Promise<string> {
  const ended = await fairlead(cluster, args, options);
  if (ended.code !== code)
    throw new Error(`fairlead ${args.join(" ")}: wanted exit ${code}, came ${ended.code}:\n${ended.out}`);
  return ended.out;
}

/** All the rollouts of one spec. */
export const TRAFFIC_MS = 15 * 60_000;

/** A pod at a ClusterIP and at UDP port 53, a client outside at a node port. */
export async function startLoad(scene: Scene) {
  const { cluster, family, nodes } = scene;
  const { caller, by } = await nearAndFar(scene);
  const service = await scene.service("load", {
    type: "NodePort",
    selector: { app: "web" },
    ports: [
      { name: "http", port: 80 },
      { name: "dns", port: 53, protocol: "UDP" },
    ],
  });
  const atService = { to: service.clusterIP, port: 80 };
  const atNode = { to: nodes[1].addresses[family] ?? "", port: service.nodePort };
  const dns = { to: service.clusterIP, port: 53, protocol: "UDP" } as const;
  await expectAnswers(caller, atService, { by });
  await expectAnswers(caller, dns, { by });
  await expectAnswers(cluster.outside, atNode, { by });
  const ways = [
    { from: caller, ...atService },
    { from: cluster.outside, ...atNode },
    { from: caller, ...dns },
  ];
  return startTraffic(ways, scene.later, TRAFFIC_MS);
}

/** The proxy that serves takes in a new service, with one endpoint. */
export async function expectServed(scene: Scene, name: string): Promise<ServiceHandle> {
  const app = `app-${name}`;
  const pod = await scene.pod({ node: scene.nodes[1], app });
  const caller = await scene.pod({ node: scene.nodes[0] });
  const service = await scene.service(name, { selector: { app }, ports: [{ port: 80 }] });
  await expectAnswers(caller, { to: service.clusterIP, port: 80 }, { by: [pod] });
  return service;
}

const AT_ONCE_MS = 1_000;

/**
 * Whether an agent gets events from the kernel and repairs what another program deletes; other agents do with their
 * next full sync.
 */
export function repairsAtOnce({ mode }: Pick<Cluster, "mode">): boolean {
  return modeNamed(mode).repairMs <= AT_ONCE_MS;
}

/** An operator takes something of a service away on a node, by hand. */
export async function deleteService(
  { cluster, family, namespace }: Scene,
  node: ClusterNode,
  { name, clusterIP }: Pick<ServiceHandle, "name" | "clusterIP">,
): Promise<void> {
  const { byHand } = modeNamed(cluster.mode);
  if (byHand === undefined) throw new Error(`no known fault to make in ${cluster.mode} mode`);
  await node.run(byHand.noService(family, `${namespace}/${name}`, clusterIP));
}

/**
 * Edits kube-proxy's file and has it taken over: each agent is a new one, on one node after the other.
 *
 * @param takeOver ends when every node has it
 */
async function changeConfiguration(cluster: Cluster, takeOver: () => Promise<void>, withinMs: number): Promise<void> {
  const kubernetes = whole(cluster);
  const before = await agents(kubernetes);
  await edit(kubernetes, [cluster.mode, "syncPeriod"], "31s");
  let isOver = false;
  let mostAway = 0;
  const watched = until(
    "the change to be over",
    async () => {
      const ready = (await agents(kubernetes)).filter((one) => one.isReady);
      mostAway = Math.max(mostAway, before.length - ready.length);
      return isOver ? undefined : "under way";
    },
    withinMs,
  );
  await takeOver().finally(() => {
    isOver = true;
  });
  await watched;
  const after = await agents(kubernetes);
  const kept = after.filter(({ uid }) => before.some((one) => one.uid === uid));
  if (after.length !== before.length || kept.length > 0 || mostAway !== 1) {
    throw new Error(
      `wanted ${before.length} new agents, one away at a time; came ${after.length}, ${kept.length} as before, ${mostAway} away at once`,
    );
  }
}

async function edit(kubernetes: WholeKubernetes, path: readonly string[], value: string): Promise<void> {
  const file = "--output=jsonpath={.data.config\\.conf}";
  const { stdout } = await kubectlSystem(kubernetes, "get", "configmap", "kube-proxy", file);
  const document = parseDocument(stdout);
  document.setIn(path, value);
  const patch = JSON.stringify({ data: { "config.conf": document.toString() } });
  await kubectlSystem(kubernetes, "patch", "configmap", "kube-proxy", "--type=merge", `--patch=${patch}`);
}

interface Agent {
  readonly uid: string;
  readonly isReady: boolean;
}

async function agents(kubernetes: WholeKubernetes): Promise<readonly Agent[]> {
  const selector = "--selector=app.kubernetes.io/name=fairlead";
  const row = "{.metadata.uid} {.status.conditions[?(@.type=='Ready')].status}";
  const table = `--output=jsonpath={range .items[*]}${row}{"\\n"}{end}`;
  const { stdout } = await kubectlSystem(kubernetes, "get", "pods", selector, table);
  return stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => line.split(" "))
    .map(([uid = "", ready]) => ({ uid, isReady: ready === "True" }));
}
