import type { Cluster, ClusterNode } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { needsKubelets, whole } from "../whole-kubernetes.ts";
import { fairlead, type ToolResult } from "./administrator.ts";
import { deleteService, repairsAtOnce } from "./delete-service.ts";
import { expectServed } from "./load.ts";

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

export const nodesLookedAt: Spec = {
  name: "fairlead status and verify --all-nodes: the node on which somebody deletes a rule is named, until it is repaired",
  suite: "rollout",
  eachFamily: false,
  alone: true,
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
