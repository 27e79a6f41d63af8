import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type KubeconfigFields, kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { able } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { until } from "../until.ts";
import { type Attacked, programFile, underAttack } from "./under-attack.ts";

const PLAIN_PORT = "8088";
const PROXY_PORT = "3128";

async function kubeconfigFile({ later }: Scene, fields: Omit<KubeconfigFields, "token">): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-`));
  later(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "kubeconfig");
  await writeFile(file, kubeconfig({ ...fields, token: USERS.proxy.token }), { mode: 0o600 });
  return file;
}

async function startBeside({ cluster, later }: Scene, program: string, ...args: readonly string[]) {
  const script = await able(cluster.apiServer.startScript)(programFile(program), args);
  later(script.stop);
  return script;
}

/** What a program alongside the API server has counted, by the spec that started it. */
const counters = new WeakMap<Scene, () => Promise<string>>();
const counted = ({ scene }: Attacked) => able(counters.get(scene))();

const plain: Spec = underAttack({
  name: "attack: an API server without TLS waits for the bearer token",
  start: async ({ scene }) => {
    const { url, token } = scene.cluster.apiServer;
    const { hostname, port } = new URL(url);
    const args = [PLAIN_PORT, hostname.replace(/^\[|\]$/g, ""), port, token];
    const script = await startBeside(scene, "plain-api", ...args);
    counters.set(scene, () => script.ask("counts"));
    return { flags: [`--kubeconfig=${await kubeconfigFile(scene, { server: `http://${hostname}:${PLAIN_PORT}` })}`] };
  },
  act: async (attacked) => {
    const meanwhile = await attacked.change("meanwhile");
    const { requests, withCredentials } = JSON.parse(await counted(attacked));
    if (requests === 0) throw new Error("wanted requests at the API server without TLS; there was none");
    if (withCredentials > 0) throw new Error(`wanted no token in ${requests} requests; ${withCredentials} had it`);
    return { "seen without token": String(requests), meanwhile };
  },
});

async function eventsOf({ scene, node }: Attacked): Promise<number> {
  const events = JSON.stringify(await scene.cluster.api.get("/api/v1/namespaces/default/events"));
  return events.split(`"involvedObject":{"kind":"Node","name":"${node.name}"`).length - 1;
}

/** Whoever goes past the proxy is refused. */
async function closeDirectWay({ scene, node }: Attacked, port: string): Promise<void> {
  const { apiServer, families } = scene.cluster;
  const [family = "IPv4"] = families;
  const tool = PLAIN_TOOL[family];
  const rule = ["INPUT", "-s", node.addresses[family] ?? "", "-p", "tcp", "--dport", port, "-j", "REJECT"];
  await apiServer.run([tool, "-A", ...rule]);
  scene.later(async () => void (await apiServer.run([tool, "-D", ...rule])));
}

const proxied: Spec = underAttack({
  name: "attack: the API server is reached through proxy-url only, Events as well",
  start: async (attacked) => {
    const { scene } = attacked;
    const { url: server } = scene.cluster.apiServer;
    const { hostname, port } = new URL(server);
    const before = await eventsOf(attacked);
    const script = await startBeside(scene, "http-proxy", PROXY_PORT);
    counters.set(scene, async () => `${await script.ask("connections")} ${before}`);
    await closeDirectWay(attacked, port);
    const file = await kubeconfigFile(scene, { server, proxyUrl: `http://${hostname}:${PROXY_PORT}` });
    return { flags: [`--kubeconfig=${file}`] };
  },
  act: async (attacked) => {
    const meanwhile = await attacked.change("meanwhile");
    const [connections = "", before = ""] = (await counted(attacked)).split(" ");
    await until(
      "an Event of the start",
      async () => ((await eventsOf(attacked)) > Number(before) ? undefined : "none"),
      15_000,
    );
    return { "proxied connections": connections, meanwhile };
  },
});

export const credentials: readonly Spec[] = [plain, proxied];
