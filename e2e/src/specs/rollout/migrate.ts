import type { Cluster, WholeKubernetes } from "../../provider/cluster.ts";
import { FAIRLEAD_IMAGE } from "../../provider/kind/fairlead.ts";
import { tool } from "../../tools/fairlead.ts";
import { withoutFailure } from "../faults/traffic.ts";
import type { Spec } from "../spec.ts";
import { until } from "../until.ts";
import { backToFairlead, needsKubelets, removeProxy, whole } from "../whole-kubernetes.ts";
import { expectServed, startLoad, TRAFFIC_MS } from "./load.ts";

const MIGRATE_MS = 8 * 60_000;
const HOLD = ["--hold=2", "--timeout=120"];

/** The command line tool as administrators use it, with the kubectl of the cluster. */
export const migrated: Spec = {
  name: "fairlead migrate: kube-proxy → Fairlead, killed half way and gone on with, and back, under load",
  suite: "rollout",
  eachFamily: false,
  alone: true,
  unfit: needsKubelets,
  run: async (scene, cluster) => {
    const kubernetes = whole(cluster);
    scene.later(() => backToFairlead(cluster));
    scene.later(() => migrate(cluster, ["--revert", "--skip-verify", ...HOLD]));
    await kubernetes.addKubeProxy();
    await removeProxy(kubernetes, "fairlead");
    const traffic = await startLoad(scene);
    await killedHalfWay(cluster, ["--apply", `--image=${FAIRLEAD_IMAGE}`, ...HOLD]);
    await migrate(cluster, ["--apply", ...HOLD]);
    if ((await labelled(kubernetes)).length !== cluster.nodes.length + 1) throw new Error("not every node was changed");
    await expectServed(scene, "migrated");
    await migrate(cluster, ["--revert", ...HOLD]);
    await expectServed(scene, "reverted");
    const seen = await traffic.stop();
    const reported = withoutFailure(seen);
    if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
    return reported;
  },
};

/** @throws CommandError, whose message has what it said */
async function migrate(
  cluster: Cluster,
  args: readonly string[],
  signal = AbortSignal.timeout(MIGRATE_MS),
): Promise<void> {
  const { kubeconfig, kubectlProgram } = whole(cluster);
  // It calls kubectl by its name.
  const path = `PATH=${kubectlProgram.replace(/\/[^/]*$/, "")}:/usr/sbin:/usr/bin:/sbin:/bin`;
  const argv = ["env", path, process.execPath, tool, "migrate", `--kubeconfig=${kubeconfig}`, ...args] as const;
  // What it prints comes with the failure only from standard error.
  await cluster.apiServer.run(["sh", "-c", '"$@" >&2', "sh", ...argv], { timeoutMs: MIGRATE_MS, signal });
}

/** Killed as soon as the first node has changed. */
async function killedHalfWay(cluster: Cluster, args: readonly string[]): Promise<void> {
  const kill = new AbortController();
  const run = migrate(cluster, args, kill.signal).then(
    () => "it came to its end",
    (error: Error) => error.message,
  );
  const changed = until(
    "the first node's change",
    async () => ((await labelled(whole(cluster))).length > 0 ? undefined : "none yet"),
    MIGRATE_MS / 2,
  );
  const ended = await Promise.race([run, changed.then(() => undefined)]);
  if (ended !== undefined) throw new Error(`wanted a run to kill, but: ${ended}`);
  kill.abort();
  await run;
}

/** Nodes that are to have Fairlead. */
async function labelled({ kubectl }: WholeKubernetes): Promise<readonly string[]> {
  const { stdout } = await kubectl(["get", "nodes", "--selector=fairlead.dev/proxy=fairlead", "--output=name"]);
  return stdout.split("\n").filter(Boolean);
}
