import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { requireTool } from "@fairlead/lab/tools/fairlead";
import { type PageReader, readConsole } from "@fairlead/lab/tools/page-reader";
import { startPodFront } from "@fairlead/lab/tools/pods/front";
import { able, needs, onlyIn, type Scene, type Spec } from "../spec.ts";

/** Somebody on call has the cluster's page open, with the nodes behind the API server. */
export const consolePage: Spec = {
  name: "console: a rule that goes on one node, and an agent that stops there, are that node's alone",
  suite: "faults",
  about: ["agent"],
  eachFamily: false,
  // What it stops and deletes is the cluster's.
  alone: true,
  unfit: (shape) =>
    onlyIn(["iptables"], "deletes a rule of iptables mode")(shape) ??
    needs("console", "a browser has to run beside the API server")(shape),
  run: async (scene) => {
    const [one, two] = scene.nodes;
    for (const node of scene.nodes) await scene.pod({ node, app: "web" });
    await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    scene.later(() => two.agent.restart());
    // So long that nothing but a restart makes it look at every rule.
    await two.agent.restart({ flags: ["--iptables-sync-period=1h"] });
    const page = await openPage(scene);
    const row = (node: ClusterNode, agent: string, kernel: string) =>
      new RegExp(`${node.name}\\t\\s*${agent}[^\\n]*(?:\\n[^\\n]+)*?\\t\\s*${kernel}`);

    page.go(`#/service/${scene.namespace}/web`);
    await page.until(row(one, "✓\\s*healthy", "✓\\s*as planned"));
    await page.until(row(two, "✓\\s*healthy", "✓\\s*as planned"));
    const began = performance.now();
    await deleteRules(two, new RegExp(`${scene.namespace}/web.* -j DNAT `));
    await page.until(row(two, "✓\\s*healthy", "✕\\s*differs"));
    // The aim on a quiet machine is 5 s.
    const ms = Math.round(performance.now() - began);
    const text = await page.until(new RegExp(`on ${two.name}.*\\n.*missing in nat KUBE-SEP-\\w+: .* -j DNAT`));
    if (!row(one, "✓\\s*healthy", "✓\\s*as planned").test(text)) fail(`wanted ${one.name} green; came:\n${text}`);

    await two.agent.kill();
    const stopped = await page.until(row(two, "✕\\s*stopped or not reachable", "✕\\s*differs"));
    if (!row(one, "✓\\s*healthy", "✓\\s*as planned").test(stopped)) fail(`wanted ${one.name} green; came:\n${stopped}`);
    await two.agent.restart();
    await page.until(row(two, "✓\\s*healthy", "✓\\s*as planned"));
    return { "red after": `${ms} ms` };
  },
};

/** By hand, and by their numbers: the last of a chain first. */
async function deleteRules(node: ClusterNode, wanted: RegExp): Promise<void> {
  const { stdout } = await node.run(["iptables", "-t", "nat", "-S"]);
  const rules = stdout.split("\n").filter((line) => line.startsWith("-A "));
  const chainOf = (line: string) => line.split(" ")[1] ?? "";
  const found = rules.flatMap((line, at) => {
    const number = rules.slice(0, at + 1).filter((one) => chainOf(one) === chainOf(line)).length;
    return wanted.test(line) ? [[chainOf(line), String(number)] as const] : [];
  });
  if (found.length === 0) fail(`no rule of nat on ${node.name} matches ${wanted}`);
  for (const [chain, number] of found.toReversed()) await node.run(["iptables", "-t", "nat", "-D", chain, number]);
}

async function openPage(scene: Scene): Promise<PageReader> {
  await requireTool();
  const { apiServer, nodes, ...shape } = scene.cluster;
  const folder = await mkdtemp(join(tmpdir(), `fairlead-e2e-${process.pid}-console-`));
  scene.later(() => rm(folder, { recursive: true }));
  const pids = new Map(nodes.map(({ name, namespacePid }) => [name, able(namespacePid)] as const));
  const namespace = able(apiServer.namespace);
  const front = await startPodFront(namespace, { server: apiServer.url, token: apiServer.token, nodes: pids });
  scene.later(async () => front[Symbol.asyncDispose]());
  const file = join(folder, "kubeconfig");
  await writeFile(file, kubeconfig({ server: front.url, token: apiServer.token }));
  const cidrs = (flag: string, excluded: boolean) => networkCIDRs(shape, { excluded }).flatMap((cidr) => [flag, cidr]);
  const args = ["--kubeconfig", file, ...cidrs("--cluster-cidr", false), ...cidrs("--exclude-cluster-cidr", true)];
  const page = await readConsole(namespace, args);
  scene.later(async () => page[Symbol.asyncDispose]());
  return page;
}

function fail(what: string): never {
  throw new Error(what);
}
