import type { ClusterNode, ClusterShape, NodeProxy } from "@fairlead/lab/provider/cluster";
import { readConsole } from "@fairlead/lab/tools/page-reader";
import { able, needs, onlyIn } from "../needs.ts";
import { type Operator, openOperator } from "../operator.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

const IPTABLES: NodeProxy = { mode: "iptables" };
const NFTABLES: NodeProxy = { mode: "nftables" };

/** What an operator asks first, with no option but the command's own, of a healthy cluster whose nodes differ. */
export const firstHour: Spec = {
  name: "tools: an operator's first hour: no option, each node in its own mode, nothing red",
  suite: "faults",
  about: ["cli"],
  eachFamily: false,
  // Its nodes get other proxies.
  alone: true,
  unfit: (shape) =>
    onlyIn(["iptables"], "its nodes begin in iptables mode")(shape) ??
    needs("browser", "a browser has to run beside the API server")(shape),
  run: async (scene, { nodes, provider }) => {
    for (const node of nodes) await scene.pod({ node, app: "web" });
    await scene.service("web", { selector: { app: "web" }, type: "NodePort", ports: [{ port: 80 }] });
    const operator = await openOperator(scene);
    const asked: string[] = [];
    scene.later(() => give(scene, new Map(nodes.map(({ name }) => [name, IPTABLES]))));
    for (const proxies of roundsFor(nodes.length, provider)) {
      await give(scene, new Map(nodes.map(({ name }, at) => [name, proxies[at] ?? IPTABLES])));
      await firstCommands(scene, operator, nodes);
      asked.push(proxies.map(nameOf).join(" and "));
    }
    await greenPage(scene, operator, nodes);
    return { "rounds, by node": asked.join("; ") };
  },
};

/** With fewer nodes than proxies more than one round, so that each is asked. */
function roundsFor(nodes: number, provider: ClusterShape["provider"]): readonly (readonly NodeProxy[])[] {
  // A cluster with kubelets has its image.
  const program = kubeProxy === "" && provider !== "netns" ? "kube-proxy" : kubeProxy;
  if (program === "") return [[IPTABLES, NFTABLES]];
  const third: NodeProxy = { mode: "iptables", kubeProxy: program };
  return nodes > 2
    ? [[IPTABLES, NFTABLES, third]]
    : [
        [IPTABLES, NFTABLES],
        [third, NFTABLES],
      ];
}

function nameOf({ mode, kubeProxy: program }: NodeProxy): string {
  return program === undefined ? `Fairlead in ${mode} mode` : `kube-proxy in ${mode} mode`;
}

/** What was given to a node that is a namespace; others begin in iptables mode. */
const swapped = new WeakMap<ClusterNode, NodeProxy>();

async function give({ cluster }: Scene, proxies: ReadonlyMap<string, NodeProxy>): Promise<void> {
  if (cluster.kubernetes !== undefined) return cluster.kubernetes.giveProxies(proxies);
  for (const node of cluster.nodes) {
    const proxy = proxies.get(node.name) ?? IPTABLES;
    if ((swapped.get(node) ?? IPTABLES) === proxy) continue;
    swapped.set(node, proxy);
    await able(node.agent.swap)(proxy);
  }
}

/** The console is open until all nodes are green. */
async function greenPage(scene: Scene, { kubeconfig }: Operator, nodes: readonly ClusterNode[]): Promise<void> {
  await using page = await readConsole(able(scene.cluster.apiServer.namespace), ["--kubeconfig", kubeconfig]);
  page.go(`#/service/${scene.namespace}/web`);
  for (const { name } of nodes) {
    await page.until(new RegExp(`${name}\\t\\s*✓\\s*healthy[^\\n]*(?:\\n[^\\n]+)*?\\t\\s*✓\\s*as planned`));
  }
}

async function firstCommands(scene: Scene, operator: Operator, nodes: readonly ClusterNode[]): Promise<void> {
  const service = `${scene.namespace}/web`;
  // A proxy that was just started may be in the middle of its first sync.
  await green(scene, operator, "verify", "--all-nodes");
  await green(scene, operator, "status", "--verify");
  for (const { name } of nodes) {
    await green(scene, operator, "doctor", "--on", name);
    await green(scene, operator, "explain", service, "--on", name);
    await green(scene, operator, "trace", "--from", "pod", "--to", service, "--on", name);
    await green(scene, operator, "flows", "--on", name);
  }
}

/** @throws Error with the last answer when the command does not come to end with code 0 */
function green(scene: Scene, { ask }: Operator, ...args: readonly string[]): Promise<void> {
  return scene.until(`${args.join(" ")} to find nothing wrong`, async () => {
    try {
      const { code, out } = await ask(...args);
      return code === 0 ? undefined : out;
    } catch (error) {
      return String(error);
    }
  });
}
