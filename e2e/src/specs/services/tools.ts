/** The tools on the cluster: by hand, in the first hour, and their packages' tests against its API server. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ClusterNode, ClusterShape, NodeProxy } from "@fairlead/lab/provider/cluster";
import { readConsole } from "@fairlead/lab/tools/page-reader";
import { KUBE_PROXY, type Operator, openOperator, openTool } from "../operator.ts";
import { able, needs, notIn, onlyIn, type Scene, type Spec } from "../spec.ts";

const PORTS = [{ port: 80 }];

/** The command line tool of an administrator on a node: objects by the real API server, rules of the running agent. */
export const tools: Spec = {
  name: "tools: explain, plan, ownership and diff of the real API server and the node's kernel",
  suite: "services",
  about: ["agent"],
  // What diff compares is the whole cluster.
  byItself: true,
  unfit: (shape) =>
    shape.provider === "netns" && shape.ownKernel !== true
      ? onlyIn(["iptables"], "looks at iptables mode's rules")(shape)
      : "the tool runs on nodes that are namespaces of this machine",
  run: async (scene, cluster) => {
    const pods = await Promise.all(scene.nodes.map((node) => scene.pod({ node, app: "web" })));
    const { clusterIP } = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const tool = await openTool(scene);
    const fairlead = (...args: readonly string[]) => tool(scene.nodes[0], cluster.mode, ...args);
    const name = `${scene.namespace}/web`;
    const family = scene.family.toLowerCase();
    const addresses = pods.map((pod) => pod.addresses[scene.family] ?? "").sort();

    await scene.until("explain to find both endpoints, and a kernel that agrees", async () => {
      const reported = await fairlead("explain", name, "--live", "-o", "json").catch(String);
      return reported.startsWith("{") ? complaintOf(JSON.parse(reported), addresses) : reported;
    });
    const byAddress = await fairlead("explain", scene.family === "IPv6" ? `[${clusterIP}]:80` : `${clusterIP}:80`);
    if (!byAddress.includes(name)) throw new Error(`${clusterIP} wanted as ${name}, explained as:\n${byAddress}`);

    const plan = await fairlead("plan", "--family", family);
    const missing = [clusterIP, ...addresses].filter((address) => !plan.includes(address));
    if (missing.length > 0) throw new Error(`plan has no ${missing.join(", ")}:\n${plan}`);
    const owners = await fairlead("ownership");
    const own = owners.split("\n").find((line) => line.startsWith(`${name} `)) ?? "";
    if (!/\sours\s+2\s+0\s/.test(own)) throw new Error(`${name} wanted as ours, with 2 endpoints, in:\n${owners}`);

    await scene.until("the cluster and the node not to differ", async () => {
      const reported = await fairlead("diff", "cluster", "node", "--family", family).catch(String);
      return /^Traffic: the same, \d+ kinds/.test(reported) && !reported.includes("Rules:") ? undefined : reported;
    });
  },
};

export const watch: Spec = {
  name: "watch: its tests against the real API server",
  ...apiServerTests("packages/watch/", "test/watch.apiserver.test.ts"),
  about: ["watch"],
};

/** The command line tool's own tests against a real API server: what it writes, is refused, and shows of changes. */
export const cli: Spec = {
  name: "fairlead: its tests against the real API server",
  ...apiServerTests("apps/cli/", ".apiserver.test.ts"),
  about: ["cli"],
};

/** The agent's and the controller's own tests against a real API server: Events that Services' descriptions have. */
export const agent: Spec = {
  name: "agent: its tests against the real API server",
  ...apiServerTests("apps/agent/", ".apiserver.test.ts"),
  about: ["agent"],
};

const IPTABLES: NodeProxy = { mode: "iptables" };

/** What an operator asks first, with no option but the command's own, of a healthy cluster whose nodes differ. */
export const firstHour: Spec = {
  name: "tools: an operator's first hour: no option, each node in its own mode, nothing red",
  suite: "faults",
  about: ["cli"],
  eachFamily: false,
  unfit: (shape) =>
    onlyIn(["iptables"], "its nodes begin in iptables mode")(shape) ??
    needs("browser", "a browser has to run next to the API server")(shape),
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

interface Explanation {
  readonly families: readonly {
    readonly ownership: { readonly ownership: string };
    readonly ports: readonly { readonly endpoints: readonly { readonly address: string }[] }[];
  }[];
  readonly kernel: readonly { readonly checked: number; readonly disagreements: readonly unknown[] }[];
}

function complaintOf({ families, kernel }: Explanation, addresses: readonly string[]): string | undefined {
  const [
    {
      ownership,
      ports: [port],
    } = { ownership: { ownership: "unknown" }, ports: [] },
  ] = families;
  const found = (port?.endpoints ?? []).map(({ address }) => address).sort();
  const checked = kernel.reduce((sum, one) => sum + one.checked, 0);
  const differing = kernel.flatMap(({ disagreements }) => disagreements);
  const isWhole = ownership.ownership === "ours" && String(found) === String(addresses);
  if (isWhole && checked > 0 && differing.length === 0) return undefined;
  return `${ownership.ownership}, with ${found.join(", ")}, ${checked} kinds of packets traced; ${JSON.stringify(differing)}`;
}

const vitest = fileURLToPath(new URL("../../../../node_modules/vitest/vitest.mjs", import.meta.url));

/** @param folder of the package, in the repository */
function apiServerTests(folder: string, file: string): Pick<Spec, "suite" | "eachFamily" | "unfit" | "run"> {
  const where = fileURLToPath(new URL(`../../../../${folder}`, import.meta.url));
  return {
    suite: "services",
    eachFamily: false,
    unfit: (shape, family) =>
      notIn(["nftables"], "the API server does not know the mode; iptables mode's clusters run them")(shape) ??
      (family === "IPv4" ? undefined : "its services have IPv4 addresses"),
    run: async ({ folder }, { apiServer }) => {
      const { url, token } = apiServer;
      // In a file: a command line is what errors print.
      const tokenFile = join(await folder(), "token");
      await writeFile(tokenFile, token, { mode: 0o600 });
      const environment = ["NO_COLOR=1", `FAIRLEAD_TEST_APISERVER=${url}`, `FAIRLEAD_TEST_TOKEN_FILE=${tokenFile}`];
      const test = [process.execPath, vitest, "run", "--reporter=dot", file];
      const { stdout } = await apiServer.run(["env", "-C", where, ...environment, ...test], { timeoutMs: 0 });
      const [, passed = "0"] = /(\d+) passed/.exec(stdout.split("Tests")[1] ?? "") ?? [];
      return { tests: passed };
    },
  };
}

const NFTABLES: NodeProxy = { mode: "nftables" };

function roundsFor(nodes: number, provider: ClusterShape["provider"]): readonly (readonly NodeProxy[])[] {
  // A cluster with kubelets has its image.
  const program = KUBE_PROXY === "" && provider !== "netns" ? "kube-proxy" : KUBE_PROXY;
  const upstream = ["iptables", "nftables"].map((mode): NodeProxy => ({ mode, kubeProxy: program }));
  const all = [IPTABLES, NFTABLES, ...(program === "" ? [] : upstream)];
  return Array.from({ length: Math.ceil(all.length / nodes) }, (_, at) => all.slice(at * nodes, (at + 1) * nodes));
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
