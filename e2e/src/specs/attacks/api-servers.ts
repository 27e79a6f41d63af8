/** API servers and networks that are hostile. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@fairlead/core";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { type KubeconfigFields, kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import type { HostileSeen, HostileWay } from "@fairlead/lab/provider/cluster";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { endpointSlice } from "@fairlead/testkit";
import { expectAnswers, until } from "../expect.ts";
import { able, onlyIn, type Scene, type Spec } from "../spec.ts";
import { type Attacked, programFile, underAttack, untilLogged } from "./under-attack.ts";

/** The agent asks after 70 s without a byte, and waits 15 s for the answer. */
const NOTICED_MS = 100_000;

const silent: Spec = underAttack({
  name: "attack: the API server falls silent, and its connections stay open",
  act: async (attacked) => {
    const { scene, node } = attacked;
    const gate = await able(scene.cluster.apiServer.turnHostile)("silent", node);
    scene.later(gate.stop);
    const before = await attacked.change("before");
    const log = await node.agent.log();
    await gate.ask("silence");
    const noticed = await untilLogged(node, log, /^E.*API server cannot be reached/, NOTICED_MS);
    // Who clings to what is open hears nothing all the same.
    await gate.ask("answer");
    const meanwhile = await attacked.change("meanwhile");
    await gate.stop();
    return { before, noticed, meanwhile };
  },
});

export const lists: readonly Spec[] = [
  list("one string", "a list that is one string of 700 MB"),
  list("nesting", "a list that is 700 MB of nesting"),
  list("endless continue", "a list that has always another page"),
  silent,
];

const PLAIN_PORT = "8088";

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

const PROXY_PORT = "3128";

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

/** Nobody can send to these; to the last there is no way. */
const ENDPOINTS: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["240.0.0.1", "255.255.255.255", "192.0.2.55"],
  IPv6: ["2001:db8::5"],
};
const ROUNDS = 5;

export const datagrams: Spec = underAttack({
  name: "attack: datagrams to endpoints that nobody can send to, in userspace mode",
  eachFamily: true,
  unfit: onlyIn(["iptables"], "starts an agent in userspace mode in place of one in iptables mode"),
  start: () => ({ flags: ["--proxy-mode=userspace"] }),
  act: async (attacked) => {
    const { scene, caller, node } = attacked;
    await noWay(scene);
    for (const [index, address] of ENDPOINTS[scene.family].entries()) {
      const to = await serviceOf(attacked, address, index);
      const probe = { protocol: "UDP", to, port: 9, count: ROUNDS, parallel: 1, timeoutMs: 300 } as const;
      await Promise.all([caller.send(probe), node.send(probe)]);
    }
    return { meanwhile: await attacked.change("meanwhile") };
  },
});

const LAST_MS = 20_000;
/** Requests a second that an API server may be asked by one node whatever it answers. */
const MOST_A_SECOND = 20;

/** Services cannot be listed any more; endpoints that come and go still count. */
async function changeEndpoints({ caller, atService, by }: Attacked): Promise<void> {
  const [near, ...others] = by;
  await near?.setReady(false);
  await expectAnswers(caller, atService, { by: others });
  await near?.setReady(true);
  await expectAnswers(caller, atService, { by });
}

function list(way: HostileWay, name: string): Spec {
  return underAttack({
    name: `attack: ${name}`,
    act: async (attacked) => {
      const { scene, node } = attacked;
      const began = performance.now();
      const gate = await able(scene.cluster.apiServer.turnHostile)(way, node);
      scene.later(gate.stop);
      await sleep(LAST_MS);
      await changeEndpoints(attacked);
      const seen: HostileSeen = JSON.parse(await gate.ask("seen"));
      const aSecond = (seen.requests * 1_000) / (performance.now() - began);
      await gate.stop();
      if (seen.requests === 0) throw new Error("wanted lists of services; nobody asked for one");
      if (aSecond > MOST_A_SECOND)
        throw new Error(`wanted ${MOST_A_SECOND} requests a second at most; ${aSecond} came`);
      return { asked: String(seen.requests), sent: `${seen.bytes >> 20} MiB` };
    },
  });
}

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

/** A service that has this one endpoint, by somebody who may write EndpointSlices. */
async function serviceOf({ scene, node }: Attacked, address: string, index: number): Promise<string> {
  const { family, namespace } = scene;
  const name = `nowhere-${index}`;
  const port = { name: "", port: 9, protocol: "UDP" } as const;
  const service = await scene.service(name, { ports: [port] });
  const slice = endpointSlice(name, { namespace, service: name, family, ports: [port], endpoints: [{ address }] });
  await scene.cluster.api.create(slice);
  scene.later(() => scene.cluster.api.delete(objectPath(slice)));
  await until(`rules for ${address}`, async () => {
    const { stdout } = await node.run([family === "IPv4" ? "iptables-save" : "ip6tables-save"]);
    return stdout.includes(service.clusterIP) ? undefined : "none";
  });
  return service.clusterIP;
}

async function noWay({ family, nodes, later }: Scene): Promise<void> {
  const [node] = nodes;
  const route = ["unreachable", ENDPOINTS[family].at(-1) ?? ""];
  const ip = ["ip", family === "IPv4" ? "-4" : "-6", "route"] as const;
  await node.run([...ip, "add", ...route]);
  later(async () => void (await node.run([...ip, "del", ...route])));
}
