import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import { FAIRLEAD_IMAGE } from "@fairlead/lab/provider/kind/fairlead";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { each } from "../every-node.ts";
import { withoutFailure } from "../faults/traffic.ts";
import { able, needs, onlyIn } from "../needs.ts";
import { type Operator, openOperator } from "../operator.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { until } from "../until.ts";
import { backToFairlead, removeProxy, whole } from "../whole-kubernetes.ts";
import { addKubeadmProxy } from "./kubeadm-proxy.ts";
import { expectServed, startLoad, TRAFFIC_MS } from "./load.ts";

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

const MIGRATE_MS = 8 * 60_000;
const HOLD = ["--hold=2", "--timeout=120"];
const TO = ["--to-mode", "nftables", "--apply", `--image=${FAIRLEAD_IMAGE}`, ...HOLD];

/** From kube-proxy's mode to another one and back, on a real control plane. */
export const migratedMode: Spec = {
  name: "fairlead migrate --to-mode nftables: node by node, killed half way and gone on with, and back to kube-proxy, under load",
  suite: "rollout",
  about: ["cli"],
  eachFamily: false,
  alone: true,
  unfit: (shape) => onlyIn(["iptables"], "nodes begin in iptables mode")(shape) ?? needsDaemonSets(shape),
  run: async (scene, cluster) => {
    const operator = await withKubeProxy(scene);
    await expectServed(scene, "before");
    const traffic = await startLoad(scene);
    const report = await operator.ask("migrate", "--to-mode", "nftables");
    if (!/^From iptables to nftables mode: /m.test(report.out))
      throw new Error(`wanted a report; came:\n${report.out}`);
    await killedHalfWay(scene, operator);
    await ended(operator, TO);
    await modesAre(cluster, "nftables");
    await expectServed(scene, "in-nftables");
    await ended(operator, ["--revert", ...HOLD]);
    await modesAre(cluster, "iptables");
    await expectServed(scene, "back");
    const seen = await traffic.stop();
    if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
    return withoutFailure(seen);
  },
};

function needsDaemonSets(shape: ClusterShape): string | undefined {
  if (shape.provider !== "netns") return undefined;
  return (
    needs("kubelet", "DaemonSets' pods have to run")(shape) ??
    (kubeProxy === "" ? "needs kube-proxy's program in FAIRLEAD_KUBE_PROXY" : undefined)
  );
}

/** kube-proxy in its DaemonSet serves every node in place of Fairlead, until the spec ends. */
async function withKubeProxy(scene: Scene): Promise<Operator> {
  const { cluster, later } = scene;
  if (cluster.kubernetes !== undefined) {
    const operator = await openOperator(scene);
    later(() => backToFairlead(cluster));
    later(async () => void (await operator.ask("migrate", "--revert", "--skip-verify", ...HOLD)));
    await whole(cluster).addKubeProxy();
    await removeProxy(whole(cluster), "fairlead");
    return operator;
  }
  const { api, apiServer } = cluster;
  for (const { name } of cluster.nodes) {
    await api.patch(`/api/v1/nodes/${name}`, { metadata: { labels: { "kubernetes.io/os": "linux" } } });
  }
  later(() => each(scene, ({ agent }) => agent.restart()));
  // What it has programmed stays: whoever comes next takes it over.
  await each(scene, ({ agent }) => agent.kill());
  const pods = await able(cluster.runProxyPods)(kubeProxy);
  later(() => pods.dispose());
  const clusterCIDR = networkCIDRs(cluster, { excluded: false }).join(",");
  const operator = await openOperator(scene, pods.podsFolder);
  await addKubeadmProxy(api, later, { server: apiServer.url, mode: cluster.mode, clusterCIDR });
  // What it leaves behind is removed as a user would, before kube-proxy's own objects are.
  later(async () => void (await operator.ask("migrate", "--revert", "--skip-verify", ...HOLD)));
  await modesAre(cluster, "iptables");
  return operator;
}

/** @throws Error with what it printed unless it comes to its end */
async function ended({ ask }: Operator, args: readonly string[]): Promise<void> {
  const { code, out } = await ask("migrate", ...args);
  if (code !== 0) throw new Error(`fairlead migrate ${args.join(" ")}: wanted exit 0, came ${code}:\n${out}`);
}

/** As soon as a node has the other mode and another one does not. */
async function killedHalfWay({ cluster }: Scene, { askUntil }: Operator): Promise<void> {
  const kill = new AbortController();
  const run = askUntil(AbortSignal.any([kill.signal, AbortSignal.timeout(MIGRATE_MS)]), "migrate", ...TO).then(
    ({ out }) => `it came to its end:\n${out}`,
    (error: Error) => error.message,
  );
  const changed = until("a node in nftables mode", async () => {
    const modes = await modesOf(cluster);
    return modes.includes("nftables") ? undefined : modes.join();
  });
  const early = await Promise.race([run, changed.then(() => undefined)]);
  if (early !== undefined) throw new Error(`wanted a run to kill, but ${early}`);
  if (!(await modesOf(cluster)).includes("iptables")) throw new Error("wanted a node that has not changed");
  kill.abort();
  await run;
}

/** What serves on each node says its mode; "" where nothing answers. */
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
