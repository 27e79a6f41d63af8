import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError } from "@fairlead/kernel";
import { kubeconfig } from "@fairlead/lab/control-plane/users";
import type { ClusterNode, NodeProxy } from "@fairlead/lab/provider/node";
import { requireTool, tool } from "@fairlead/lab/tools/fairlead";
import { readConsole } from "@fairlead/lab/tools/page-reader";
import { startPodFront } from "@fairlead/lab/tools/pods/front";
import { able, needs, onlyIn } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

const IPTABLES: NodeProxy = { mode: "iptables" };
const NFTABLES: NodeProxy = { mode: "nftables" };
const KUBE_PROXY: NodeProxy = { mode: "iptables", kubeProxy };

/** What an operator asks first, with no option but the command's own, of a healthy cluster whose nodes differ. */
export const firstHour: Spec = {
  name: "tools: an operator's first hour: no option, each node in its own mode, nothing red",
  suite: "services",
  about: ["cli"],
  eachFamily: false,
  // Its nodes get other proxies.
  alone: true,
  unfit: (shape) =>
    onlyIn(["iptables"], "its nodes begin in iptables mode")(shape) ??
    needs("console", "the API server's pods are namespaces of this machine")(shape),
  run: async (scene, cluster) => {
    const nodes = cluster.nodes;
    for (const node of nodes) await scene.pod({ node, app: "web" });
    await scene.service("web", { selector: { app: "web" }, type: "NodePort", ports: [{ port: 80 }] });
    const operator = await openOperator(scene);
    const asked: string[] = [];
    for (const proxies of roundsFor(nodes.length)) {
      for (const [at, node] of nodes.entries()) await give(scene, node, proxies[at] ?? IPTABLES);
      await firstCommands(scene, operator, nodes);
      asked.push(proxies.map(nameOf).join(" and "));
    }
    await operator.console(nodes);
    return { "rounds, by node": asked.join("; ") };
  },
};

/** With fewer nodes than proxies more than one round, so that each is asked. */
function roundsFor(nodes: number): readonly (readonly NodeProxy[])[] {
  if (kubeProxy === "") return [[IPTABLES, NFTABLES]];
  return nodes > 2
    ? [[IPTABLES, NFTABLES, KUBE_PROXY]]
    : [
        [IPTABLES, NFTABLES],
        [KUBE_PROXY, NFTABLES],
      ];
}

function nameOf({ mode, kubeProxy: program }: NodeProxy): string {
  return program === undefined ? `Fairlead in ${mode} mode` : `kube-proxy in ${mode} mode`;
}

const swapped = new WeakMap<ClusterNode, NodeProxy>();

async function give(scene: Scene, node: ClusterNode, proxy: NodeProxy): Promise<void> {
  if ((swapped.get(node) ?? IPTABLES) === proxy) return;
  if (!swapped.has(node)) scene.later(async () => able(node.agent.swap)(IPTABLES));
  swapped.set(node, proxy);
  await able(node.agent.swap)(proxy);
}

interface Operator {
  /** Runs a command where the API server is; gives what it printed. @throws Error unless it ends with code 0 */
  fairlead(...args: readonly string[]): Promise<string>;
  /** Opens the console and waits until all nodes are green. */
  console(nodes: readonly ClusterNode[]): Promise<void>;
}

async function openOperator(scene: Scene): Promise<Operator> {
  await requireTool();
  const { apiServer, nodes } = scene.cluster;
  const folder = await mkdtemp(join(tmpdir(), `fairlead-e2e-${process.pid}-first-hour-`));
  scene.later(() => rm(folder, { recursive: true }));
  const pids = new Map(nodes.map(({ name, namespacePid }) => [name, able(namespacePid)] as const));
  const namespace = able(apiServer.namespace);
  const front = await startPodFront(namespace, { server: apiServer.url, token: apiServer.token, nodes: pids });
  scene.later(async () => front[Symbol.asyncDispose]());
  const file = join(folder, "kubeconfig");
  await writeFile(file, kubeconfig({ server: front.url, token: apiServer.token }));
  return {
    fairlead: async (...args) => {
      const argv = ["env", "NO_COLOR=1", `KUBECONFIG=${file}`, process.execPath, tool, ...args] as const;
      return (await apiServer.run(argv, { timeoutMs: 0 })).stdout;
    },
    console: async (all) => {
      const page = await readConsole(namespace, ["--kubeconfig", file]);
      scene.later(async () => page[Symbol.asyncDispose]());
      page.go(`#/service/${scene.namespace}/web`);
      for (const { name } of all) {
        await page.until(new RegExp(`${name}\\t\\s*✓\\s*healthy[^\\n]*(?:\\n[^\\n]+)*?\\t\\s*✓\\s*as planned`));
      }
    },
  };
}

async function firstCommands(scene: Scene, { fairlead }: Operator, nodes: readonly ClusterNode[]): Promise<void> {
  const service = `${scene.namespace}/web`;
  // A proxy that was just started may be in the middle of its first sync.
  await green(scene, "verify --all-nodes", () => fairlead("verify", "--all-nodes"));
  await green(scene, "status --verify", () => fairlead("status", "--verify"));
  for (const { name } of nodes) {
    await green(scene, `doctor on ${name}`, async () => {
      const found = await fairlead("doctor", "--on", name);
      if (/^ +→.*(?:delete|--cleanup|-D )/m.test(found)) throw new Error(`advice removes something:\n${found}`);
      return found;
    });
    await green(scene, `explain on ${name}`, () => fairlead("explain", service, "--on", name));
    await green(scene, `trace on ${name}`, () => fairlead("trace", "--from", "pod", "--to", service, "--on", name));
    await green(scene, `flows on ${name}`, () => fairlead("flows", "--on", name));
  }
}

/** @throws Error with the last answer when the command does not come to end with code 0 */
function green(scene: Scene, what: string, ask: () => Promise<string>): Promise<void> {
  return scene.until(`${what} to find nothing wrong`, async () => {
    try {
      await ask();
      return undefined;
    } catch (error) {
      return error instanceof CommandError ? `${error.message}\n${error.stdout}` : String(error);
    }
  });
}
