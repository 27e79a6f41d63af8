import { setTimeout as sleep } from "node:timers/promises";
import { type AgentFolder, type AgentProcess, agentFolder, requireAgent, startAgent } from "@fairlead/lab/agent";
import { type Mode, servesLocalhost } from "@fairlead/lab/modes";
import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import { type Lab, namespaceOf, openLab } from "@fairlead/lab/plain/lab";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { applySettings } from "@fairlead/lab/wire";
import { clientA, hosts, type RawObject } from "@fairlead/testkit";
import {
  type Ask,
  CONSOLE_FLAGS,
  DEMO_FLAGS,
  type DemoEnvironment,
  leftovers,
  NGINX_CALICO_IP,
  NODE_PORTS_AT,
  type Reply,
  WEB,
} from "./stage.ts";

/**
 * The demo on the real kernel: the lab's namespaces, real HTTP servers as pods, and the built agent on node-a.
 *
 * @param until what must be served before the show begins
 * @param mode in which the agent serves
 */
export async function realStage(objects: readonly RawObject[], until: Ask, mode: Mode): Promise<DemoEnvironment> {
  await requireAgent();
  const opened = new AsyncDisposableStack();
  try {
    const lab = opened.use(
      await openLab({ podPorts: ports([80, 8080]), landingPorts: ports([80, 8080, WEB.nodePort]) }),
    );
    // The console shows what was asked, however long a busy machine takes to open it.
    await applySettings(lab.runner("node-a"), { "net/netfilter/nf_conntrack_tcp_timeout_time_wait": "600" });
    const folder = await agentFolder(objects);
    opened.defer(() => folder.remove());
    const agent = startAgent(lab.namespace("node-a"), {
      flags: [`--proxy-mode=${mode.name}`, ...mode.flags, ...DEMO_FLAGS, ...pathFlags(folder)],
    });
    opened.defer(async () => void (await agent.stop()));
    await served(lab, agent, until);
    return stageOf({ lab, folder, agent, mode }, opened.move());
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** Ends of hangs: a busy machine takes many times as long as a quiet one. */
const START_MS = 300_000;
const TIMEOUT_MS = 30_000;
/** Longer than the agent's minSyncPeriod: a change that comes by itself is written at once. */
const APART_MS = 1_100;

async function stageOf({ lab, folder, agent, mode }: Parts, opened: AsyncDisposableStack): Promise<DemoEnvironment> {
  const node = lab.runner("node-a");
  const { listings, linesOf, version } = mode.rules;
  const { stdout } = await node.run(version);
  const pids = [agent.pid, ...[...lab.namespaces.values()].map(({ pid }) => pid)];
  return {
    ground: `the real kernel (${stdout.trim()})`,
    real: true,
    nodePortsAt: NODE_PORTS_AT[mode.nodePorts],
    proof: "with real requests on the real kernel",
    patienceMs: 180_000,
    change: async (objects) => {
      await sleep(APART_MS);
      return folder.write(objects);
    },
    ask: (ask) => requests(lab, ask),
    rules: async () => {
      const listed = await Promise.all(listings.map((argv) => node.run(argv)));
      return listed.flatMap(({ stdout: listing }) => linesOf(listing));
    },
    manifests: folder.manifests,
    node: { namespace: lab.namespace("node-a"), mode: mode.name },
    tour: tourOf({ lab, folder, agent, mode }),
    close: async () => {
      await opened.disposeAsync();
      return leftovers(pids, folder.path);
    },
  };
}

interface Parts {
  readonly lab: Lab;
  readonly folder: AgentFolder;
  readonly agent: AgentProcess;
  readonly mode: Mode;
}

async function served(lab: Lab, agent: AgentProcess, until: Ask): Promise<void> {
  const early = agent.ended.then(({ exitCode, log }) => {
    throw new Error(`the agent ended with exit code ${exitCode}:\n${log}`);
  });
  const first = waitUntil("the first answer from a service", START_MS, async () => {
    const replies = await requests(lab, until);
    return replies.every(({ end }) => end !== "untouched" && end !== "silence") ? true : undefined;
  });
  await Promise.race([first, early]);
}

async function requests(lab: Lab, { from, to, port, count }: Ask): Promise<readonly Reply[]> {
  const probe = { protocol: "TCP", to, port, count, parallel: 4, timeoutMs: TIMEOUT_MS } as const;
  const results = await lab.peer(from).send(probe);
  return results.map(replyOf);
}

function replyOf(result: ProbeResult): Reply {
  const { at } = result;
  if (result.kind === "refused") return { at, end: "refused" };
  if (result.kind === "lost") return { at, end: "silence" };
  if (result.kind === "error") return { at, end: result.code };
  const pod = hosts.find((host) => host.place === "pod" && namespaceOf(host) === result.server);
  return { at, end: pod?.name ?? "untouched", seenAs: result.remote.slice(0, result.remote.lastIndexOf(":")) };
}

function ports(tcp: readonly number[]) {
  return { tcp, udp: [] };
}

function pathFlags({ manifests, state }: AgentFolder): readonly string[] {
  return [`--manifests=${manifests}`, `--state-dir=${state}`, "-v=2"];
}

function tourOf({ lab, folder, agent, mode }: Parts): readonly string[] {
  const inside = (name: string, command: string) => `${lab.namespace(name).argvPrefix.join(" ")} ${command}`;
  const tool = (command: string) =>
    [
      "apps/cli/dist/main.js",
      command,
      "-f",
      folder.manifests,
      "--node node-a --mode",
      mode.name,
      ...CONSOLE_FLAGS,
    ].join(" ");
  return [
    "the node's rules:",
    `  ${inside("node-a", mode.rules.look)}`,
    "requests:",
    `  ${inside(clientA.name, `curl -s http://${NGINX_CALICO_IP}`)}`,
    ...(servesLocalhost(mode) ? [`  ${inside("node-a", `curl -s http://127.0.0.1:${WEB.nodePort}`)}`] : []),
    "which network owns each service, and the metrics:",
    `  ${inside("node-a", "curl -s http://127.0.0.1:10249/ownership")}`,
    `  ${inside("node-a", "curl -s http://127.0.0.1:10249/metrics")}`,
    "what the tool says of the node, once it is built (npm run demo -- --console builds it):",
    ...["verify", "explain nginx-calico --live", "flows"].map((command) => `  ${inside("node-a", tool(command))}`),
    `the objects, followed live: ${folder.manifests}/objects.yaml`,
    `the agent: process ${agent.pid}`,
  ];
}
