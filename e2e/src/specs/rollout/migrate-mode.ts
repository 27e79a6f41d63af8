import { type ApiClient, type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import type { Cluster, ClusterShape } from "@fairlead/lab/provider/cluster";
import { FAIRLEAD_IMAGE } from "@fairlead/lab/provider/kind/fairlead";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { until } from "../expect.ts";
import { withoutFailure } from "../faults/stage.ts";
import { backToFairlead, type Operator, openOperator, removeProxy, whole } from "../operator.ts";
import { able, each, needs, onlyIn, type Scene, type Spec } from "../spec.ts";
import { expectServed, startLoad, TRAFFIC_MS } from "./migrate.ts";

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

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

const MIGRATE_MS = 8 * 60_000;

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

const NAME = "kube-proxy";
const FOLDER = "/var/lib/kube-proxy";
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const own = { name: NAME, namespace: "kube-system" };
const labels = { "k8s-app": NAME };

interface Setup {
  readonly server: string;
  readonly mode: string;
  readonly clusterCIDR: string;
}

/** JSON is YAML. What is the machine's own stays as it is: connection tracking's limits. */
function configMap({ server, mode, clusterCIDR }: Setup): ApiObject {
  const config = {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: `${FOLDER}/kubeconfig.conf` },
    mode,
    clusterCIDR,
    conntrack: { maxPerCore: 0, min: 0 },
  };
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default", cluster: { server, "certificate-authority": `${ACCOUNT}/ca.crt` } }],
    users: [{ name: "default", user: { tokenFile: `${ACCOUNT}/token` } }],
    contexts: [{ name: "default", context: { cluster: "default", user: "default" } }],
    "current-context": "default",
  };
  const data = { "config.conf": JSON.stringify(config), "kubeconfig.conf": JSON.stringify(kubeconfig) };
  return { apiVersion: "v1", kind: "ConfigMap", metadata: own, data };
}

const daemonSet: ApiObject = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: own,
  spec: {
    selector: { matchLabels: labels },
    updateStrategy: { type: "RollingUpdate" },
    template: {
      metadata: { labels },
      spec: {
        serviceAccountName: NAME,
        hostNetwork: true,
        nodeSelector: { "kubernetes.io/os": "linux" },
        tolerations: [{ operator: "Exists" }],
        containers: [
          {
            name: NAME,
            image: "registry.k8s.io/kube-proxy:v1.37.1",
            command: [
              "/usr/local/bin/kube-proxy",
              `--config=${FOLDER}/config.conf`,
              "--hostname-override=$(NODE_NAME)",
            ],
            env: [{ name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
            volumeMounts: [{ name: NAME, mountPath: FOLDER }],
          },
        ],
        volumes: [{ name: NAME, configMap: { name: NAME } }],
      },
    },
  },
};

/** kube-proxy's objects as kubeadm has them. */
async function addKubeadmProxy(
  api: ApiClient,
  later: (undo: () => Promise<void>) => void,
  setup: Setup,
): Promise<void> {
  const account: ApiObject = { apiVersion: "v1", kind: "ServiceAccount", metadata: own };
  const binding: ApiObject = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "kubeadm:node-proxier" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:node-proxier" },
    subjects: [{ kind: "ServiceAccount", ...own }],
  };
  for (const object of [account, binding, configMap(setup), daemonSet]) {
    await api.create(object);
    later(() => api.delete(objectPath(object)));
  }
}
