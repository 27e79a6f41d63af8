/** API servers and networks that are hostile. */

import type { IPFamily } from "@fairlead/core";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { endpointSlice } from "@fairlead/testkit";
import { until } from "../expect.ts";
import { able, onlyIn, type Scene, type Spec } from "../spec.ts";
import { type Attacked, underAttack, untilLogged } from "./under-attack.ts";

/** The agent asks after 70 s without a byte, and waits 15 s for the answer. */
const NOTICED_MS = 100_000;

export const silent: Spec = underAttack({
  name: "attack: the API server falls silent, and its connections stay open",
  act: async (attacked) => {
    const { scene, node } = attacked;
    const gate = await able(scene.cluster.apiServer.turnSilent)(node);
    scene.later(gate.stop);
    const before = await attacked.change("before");
    const log = await node.agent.log();
    await gate.ask("silence");
    const noticed = await untilLogged(node, log, /^E.*API server cannot be reached/, NOTICED_MS);
    // An agent that keeps its open connections gets nothing all the same.
    await gate.ask("answer");
    const meanwhile = await attacked.change("meanwhile");
    await gate.stop();
    return { before, noticed, meanwhile };
  },
});

/** No host can send to these; to the last there is no way. */
const ENDPOINTS: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["240.0.0.1", "255.255.255.255", "192.0.2.55"],
  IPv6: ["2001:db8::5"],
};
const ROUNDS = 5;

export const datagrams: Spec = underAttack({
  name: "attack: datagrams to endpoints that no host can send to, in userspace mode",
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

/** A service with this one endpoint, from a user who may write EndpointSlices. */
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
