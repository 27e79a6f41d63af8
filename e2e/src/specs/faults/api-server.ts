import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import { cutArgv } from "@fairlead/lab/faults";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { type PageReader, readConsole, requireTool } from "@fairlead/lab/tools/page-reader";
import { startPodFront } from "@fairlead/lab/tools/pods/front";
import { able, needs, onlyIn, type Scene, type Spec } from "../spec.ts";
import { each, expectLate, withoutLoss } from "./stage.ts";

const ABOUT = ["agent", "watch"] as const;

/** Agents and controllers ask a server that is away less and less, at last every half minute. */
const BACK_MS = 300_000;

const away = withoutLoss(
  "the API server away for 30 s, and back with other objects",
  async (scene) => {
    const { apiServer } = scene.cluster;
    await apiServer.stop();
    await sleep(30_000);
    await apiServer.start();
    await expectLate(scene, { withinMs: BACK_MS });
  },
  {
    unfit: ({ provider }) => (provider === "kind" ? "the API server of kind is the kubelet's to stop" : undefined),
    about: ABOUT,
  },
);

/** Ends connections at the API server, which the other end is told by a reset. Gives how many. */
export async function cutConnections({ cluster, nodes, family }: Scene): Promise<number> {
  const answers = await Promise.all(
    nodes.map(({ addresses }) => cluster.apiServer.run(cutArgv("6443", addresses[family] ?? ""))),
  );
  return answers.flatMap(({ stdout }) => stdout.split("\n").filter(Boolean)).length;
}

/** Connections to the API server are reset, and new ones are for a moment. */
const cut = withoutLoss(
  "the watches cut every second, 15 times",
  async (scene) => {
    const tool = PLAIN_TOOL[scene.family];
    const rule = ["OUTPUT", "-p", "tcp", "--dport", "6443", "-j", "REJECT", "--reject-with", "tcp-reset"];
    let connections = 0;
    for (let round = 0; round < 15; round++) {
      await each(scene, async (node) => void (await node.run([tool, "-I", ...rule])));
      connections += await cutConnections(scene);
      await sleep(200);
      await each(scene, async (node) => void (await node.run([tool, "-D", ...rule])));
      await sleep(800);
    }
    if (connections < scene.nodes.length) throw new Error(`${connections} connections were cut: the kernel cannot`);
    await expectLate(scene, { withinMs: BACK_MS });
    return { "connections cut": String(connections) };
  },
  {
    unfit: ({ provider }) => (provider === "netns" ? undefined : "cuts connections where namespaces are"),
    about: ABOUT,
  },
);

const STORM_MS = 15_000;

const gone = withoutLoss(
  "a storm of 410: every watch ends with it for 15 s",
  async (scene) => {
    const expireWatches = able(scene.cluster.apiServer.expireWatches);
    const [watches] = await Promise.all([
      expireWatches(STORM_MS),
      sleep(STORM_MS / 3).then(() => expectLate(scene, { withinMs: BACK_MS })),
    ]);
    if (watches < 2 * scene.nodes.length) throw new Error(`no storm: ${watches} watches ended with 410`);
    return { "watches ended with 410": String(watches) };
  },
  { unfit: needs("expire-watches"), about: ABOUT },
);

const CHANGES = 1_000;

const rolling = withoutLoss(`${CHANGES} endpoint changes beside those that stay`, async (scene) => {
  const [first, second] = scene.nodes;
  const moving = await Promise.all([first, second].map((node) => scene.pod({ node, app: "web" })));
  for (let change = 0; change < CHANGES / 2; change++) {
    await Promise.all(moving.map((pod) => pod.setReady(change % 2 === 1)));
  }
  await Promise.all(moving.map((pod) => pod.setReady(false)));
});

export const apiServer: readonly Spec[] = [away, cut, gone, rolling];

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
