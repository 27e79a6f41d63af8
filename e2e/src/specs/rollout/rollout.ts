import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { contains } from "@fairlead/base";
import type { Cluster, ClusterNode, ClusterShape, WholeKubernetes } from "@fairlead/lab/provider/cluster";
import { FAIRLEAD_IMAGE } from "@fairlead/lab/provider/kind/fairlead";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import type { ToolResult } from "@fairlead/lab/tools/page-reader";
import { until } from "../expect.ts";
import { withoutFailure } from "../faults/stage.ts";
import { endpointAt, expectForeign, expectNoTrace } from "../multi-cni/untouched.ts";
import { backToFairlead, kubectlSystem, needsKubelets, ROLLOUT_MS, removeProxy, whole } from "../operator.ts";
import { onlyIPv4, type Scene, type Spec } from "../spec.ts";
import { deleteService, expectServed, fairlead, migrations, repairsAtOnce, startLoad, TRAFFIC_MS } from "./migrate.ts";

const common = { suite: "rollout", eachFamily: false, unfit: needsKubelets } as const;

const swap: Spec = {
  ...common,
  name: "Fairlead → kube-proxy → Fairlead in its DaemonSet → kube-proxy → Fairlead, under load",
  run: async (scene, cluster) => {
    const kubernetes = whole(cluster);
    const traffic = await startLoad(scene);
    const step = async (name: string, change: () => Promise<void>) => {
      await change();
      await expectServed(scene, name);
    };
    scene.later(() => backToFairlead(cluster));
    await step("kube-proxy", async () => {
      await kubernetes.addKubeProxy();
      await removeProxy(kubernetes, "fairlead");
    });
    await step("its-image", async () => {
      await kubectlSystem(kubernetes, "set", "image", "daemonset/kube-proxy", `kube-proxy=${FAIRLEAD_IMAGE}`);
      await rolledOut(kubernetes);
      await expectFairlead(cluster);
    });
    await step("undone", async () => {
      await kubectlSystem(kubernetes, "rollout", "undo", "daemonset/kube-proxy");
      await rolledOut(kubernetes);
    });
    await step("fairlead", async () => {
      await removeProxy(kubernetes, "kube-proxy");
      await kubernetes.addFairlead();
    });
    const seen = await traffic.stop();
    const reported = withoutFailure(seen);
    if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
    return reported;
  },
};

/** The manifest that operators run for two pod networks; its image is the one thing that is Fairlead's. */
const foundingCase = fileURLToPath(new URL("../../../../deploy/test/fixtures/founding-case.yaml", import.meta.url));

/** An address in the manifest's excluded CIDR. */
const OTHERS_ENDPOINT = "10.244.9.9";

const founding: Spec = {
  ...common,
  name: "the founding case's manifest, with only the image changed: it serves, and ignores OVN's services",
  unfit: (shape) => needsKubelets(shape) ?? onlyIPv4("its CIDRs are IPv4")(shape) ?? excludedByManifest(shape),
  run: async (scene, cluster) => {
    const kubernetes = whole(cluster);
    const manifest = (await readFile(foundingCase, "utf8")).replace(/server: .*/, `server: ${cluster.apiServer.url}`);
    scene.later(() => backToFairlead(cluster));
    await removeProxy(kubernetes, "fairlead");
    await kubernetes.kubectl(["apply", "-f", "-"], { input: manifest });
    await rolledOut(kubernetes);
    await expectServed(scene, "ours");
    const theirs = await scene.service("theirs", { ports: [{ port: 80 }] });
    const { namespace } = scene;
    await cluster.api.create(endpointAt({ namespace, service: "theirs", family: "IPv4", address: OTHERS_ENDPOINT }));
    await expectForeign({ ...scene, family: "IPv4" }, "theirs");
    await expectNoTrace(scene, theirs.clusterIP);
  },
};

function excludedByManifest({ networks: [first] }: ClusterShape): string | undefined {
  const { IPv4: cidr } = first?.podCIDRs ?? {};
  return cidr !== undefined && contains(cidr, OTHERS_ENDPOINT)
    ? `its manifest excludes ${cidr}, which is all that this cluster has`
    : undefined;
}

const nodesLookedAt: Spec = {
  name: "fairlead status and verify --all-nodes: the node that loses a rule is named, until it is repaired",
  suite: "rollout",
  eachFamily: false,
  unfit: needsKubelets,
  run: async (scene, cluster) => {
    const [, second] = scene.nodes;
    const victim = await expectServed(scene, "victim");
    const name = `${scene.namespace}/${victim.name}`;
    await scene.until("every node as it should be", () => complaint(cluster, 0, {}));

    const stops = repairsAtOnce(cluster);
    if (stops) {
      scene.later(() => second.agent.signal("SIGCONT"));
      await second.agent.signal("SIGSTOP");
    }
    await deleteService(scene, second, victim);
    const damaged = await complaint(cluster, 1, { [second.name]: [name] });
    if (damaged !== undefined) throw new Error(damaged);
    if (stops) await second.agent.signal("SIGCONT");
    else await repaired(scene, second);
    await scene.until("every node as it should be again", () => complaint(cluster, 0, {}));
  },
};

export const rollout: readonly Spec[] = [swap, ...migrations, nodesLookedAt, founding];

const START_MS = 60_000;

async function rolledOut(kubernetes: WholeKubernetes): Promise<void> {
  await kubectlSystem(kubernetes, "rollout", "status", "daemonset/kube-proxy", `--timeout=${ROLLOUT_MS / 1000 - 10}s`);
}

/** kube-proxy's DaemonSet has no probes: a container that has started is ready, whether it serves or not. */
async function expectFairlead({ nodes }: Cluster): Promise<void> {
  await until(
    "Fairlead on every node",
    async () => {
      const answers = nodes.map(({ agent }) => agent.get("/ownership").then(JSON.parse));
      const failed = (await Promise.allSettled(answers)).filter(({ status }) => status === "rejected");
      return failed.length === 0 ? undefined : `no answer on ${failed.length} nodes`;
    },
    START_MS,
  );
}

const LOOK_MS = 120_000;

/** A row of `fairlead status`, as far as it is looked at. */
interface Row {
  readonly node: string;
  readonly answers: boolean;
  readonly healthy?: boolean;
  readonly mode?: string;
  readonly differences?: number;
}

/** What `fairlead verify --all-nodes` says of a node. */
type Report =
  | { readonly node: string; readonly problem: string }
  | { readonly node: string; readonly families: readonly { readonly services: readonly { service?: string }[] }[] };

/** What both commands say that is not wanted: their exit code, a row for each node, and the services that differ. */
async function complaint(
  cluster: Cluster,
  code: ToolResult["code"],
  differing: Readonly<Record<string, readonly string[]>>,
): Promise<string | undefined> {
  const cidrs = (flag: string, excluded: boolean) =>
    networkCIDRs(cluster, { excluded }).map((cidr) => `${flag}=${cidr}`);
  const set = [...cidrs("--cluster-cidr", false), ...cidrs("--exclude-cluster-cidr", true), `--mode=${cluster.mode}`];
  const verified = await fairlead(cluster, ["verify", "--all-nodes", ...set, "--output=json"], { timeoutMs: LOOK_MS });
  const status = await fairlead(cluster, ["status", "--verify", ...set, "--output=json"], { timeoutMs: LOOK_MS });
  const reports: readonly Report[] = JSON.parse(verified.out);
  const rows: readonly Row[] = JSON.parse(status.out);
  const names = await nodeNames(cluster);
  const wanted = names.map((node) => `${node}: ${differing[node] ?? ""}`);
  const found = reports.map((report) => `${report.node}: ${"problem" in report ? report.problem : servicesOf(report)}`);
  if (verified.code !== code || found.sort().join("; ") !== wanted.sort().join("; ")) {
    return `verify: wanted exit ${code} and ${wanted.join("; ")}; came exit ${verified.code} and\n${verified.out}`;
  }
  const isRight = ({ node, answers, healthy, mode, differences }: Row) => {
    const count = differing[node]?.length ?? 0;
    const answering = answers && healthy === true && mode === cluster.mode;
    return differences === count && (answering || count > 0);
  };
  if (status.code === code && rows.length === names.length && rows.every(isRight)) return undefined;
  return `status: wanted exit ${code}; came exit ${status.code} and\n${status.out}`;
}

function servicesOf({ families }: Extract<Report, { families: unknown }>): string {
  return [...new Set(families.flatMap(({ services }) => services.map(({ service = "all" }) => service)))].join();
}

async function nodeNames(cluster: Cluster): Promise<readonly string[]> {
  const { stdout } = await whole(cluster).kubectl(["get", "nodes", "--output=name"]);
  return stdout
    .trim()
    .split("\n")
    .map((name) => name.replace("node/", ""))
    .sort();
}

/** `verify --repair` on the node, where the agent is: in its pod, with what the pod has. */
async function repaired({ cluster }: Scene, node: ClusterNode): Promise<void> {
  const { kubectl } = whole(cluster);
  const inSystem = ["--namespace=kube-system"];
  const selector = ["--selector=app.kubernetes.io/name=fairlead", `--field-selector=spec.nodeName=${node.name}`];
  const { stdout } = await kubectl(["get", "pods", ...inSystem, ...selector, "--output=name"]);
  const config = "--config=/etc/fairlead/config.conf";
  const verify = [
    "fairlead",
    "verify",
    "--repair",
    config,
    "--kubeconfig=/etc/fairlead/kubeconfig.conf",
    `--node=${node.name}`,
  ];
  await kubectl(["exec", ...inSystem, stdout.trim(), "--container=fairlead", "--", ...verify], { timeoutMs: LOOK_MS });
}
