import { CommandError } from "@fairlead/kernel";
import type { Cluster, ClusterNode, WholeKubernetes } from "@fairlead/lab/provider/cluster";
import { FAIRLEAD_IMAGE } from "@fairlead/lab/provider/kind/fairlead";
import { until } from "../expect.ts";
import { withoutFailure } from "../faults/stage.ts";
import { backToFairlead, kubectlSystem, needsKubelets, removeProxy, whole } from "../operator.ts";
import type { Spec } from "../spec.ts";
import {
  changeConfiguration,
  deleteService,
  expectServed,
  fairlead,
  fairleadEnds,
  repairsAtOnce,
  startLoad,
  TRAFFIC_MS,
} from "./administrator.ts";

const MIGRATE_MS = 8 * 60_000;
/** Well below the time after which a run is taken for dead. */
const REFUSED_MS = 30_000;
const HOLD = ["--hold=2", "--timeout=120"];
const APPLY = ["--apply", `--image=${FAIRLEAD_IMAGE}`, ...HOLD];

const COMMON = { suite: "rollout", eachFamily: false, alone: true, unfit: needsKubelets } as const;

const migrated: Spec = {
  ...COMMON,
  name: "fairlead migrate: kube-proxy → Fairlead, one run at a time, killed half way and gone on with, another configuration, and back, under load",
  run: async (scene, cluster) => {
    const kubernetes = whole(cluster);
    await withKubeProxy(cluster, scene.later);
    const traffic = await startLoad(scene);
    await killedHalfWay(cluster, APPLY);
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
 * A service that nobody asks loses a rule again and again, on the second worker from when it has Fairlead; who would
 * repair that at once is stopped.
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
    const told = await fairleadEnds(1, cluster, ["migrate", ...APPLY], { timeoutMs: MIGRATE_MS }).finally(() =>
      ended.abort(),
    );
    await damaged;
    const wanted = new RegExp(`^Stopped: ${second.name}, served by fairlead: .*victim.*; kube-proxy serves it$`, "m");
    if (!wanted.test(told)) throw new Error(`wanted ${wanted}, came:\n${told}`);
    if ((await labeled(whole(cluster))).join() !== `node/${first.name}`)
      throw new Error(`wanted Fairlead on ${first.name} only, came ${await labeled(whole(cluster))}`);
    const problem = await fairleadEnds(0, cluster, ["migrate"], { timeoutMs: MIGRATE_MS });
    if (!new RegExp(`^${second.name} .* kube-proxy +${second.name}, served by`, "m").test(problem))
      throw new Error(`wanted ${second.name} with its problem, came:\n${problem}`);
    await expectServed(scene, "afterwards");
    return withoutFailure(await traffic.stop());
  },
};

/** The command line tool as administrators use it. */
export const migrations: readonly Spec[] = [migrated, stopped];

async function withKubeProxy(cluster: Cluster, later: (undo: () => Promise<void>) => void): Promise<void> {
  const kubernetes = whole(cluster);
  later(() => backToFairlead(cluster));
  later(() => migrate(cluster, ["--revert", "--skip-verify", ...HOLD]));
  await kubernetes.addKubeProxy();
  await removeProxy(kubernetes, "fairlead");
}

/** @throws Error with what it printed */
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
async function killedHalfWay(cluster: Cluster, args: readonly string[]): Promise<void> {
  const kill = new AbortController();
  const run = migrate(cluster, args, kill.signal).then(
    () => "it came to its end",
    (error: Error) => error.message,
  );
  const changed = until(
    "the first node's change",
    async () => ((await labeled(whole(cluster))).length > 0 ? undefined : "none yet"),
    MIGRATE_MS / 2,
  );
  const ended = await Promise.race([run, changed.then(() => undefined)]);
  if (ended !== undefined) throw new Error(`wanted a run to kill, but: ${ended}`);
  await refused(cluster, args);
  kill.abort();
  await run;
}

/** Whether Fairlead's pod on a node has become ready. */
async function isReady(cluster: Cluster, { name }: ClusterNode): Promise<boolean> {
  const selector = ["--selector=app.kubernetes.io/name=fairlead", `--field-selector=spec.nodeName=${name}`];
  const ready = "--output=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}";
  return (await kubectlSystem(whole(cluster), "get", "pods", ...selector, ready)).stdout === "True";
}

/** Nodes that are to have Fairlead. */
async function labeled({ kubectl }: WholeKubernetes): Promise<readonly string[]> {
  const { stdout } = await kubectl(["get", "nodes", "--selector=fairlead.dev/proxy=fairlead", "--output=name"]);
  return stdout.split("\n").filter(Boolean);
}
