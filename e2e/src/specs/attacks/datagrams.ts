import type { IPFamily } from "@fairlead/core";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { endpointSlice } from "@fairlead/testkit";
import { onlyIn } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { until } from "../until.ts";
import { type Attacked, underAttack } from "./under-attack.ts";

/** Nobody can send to these; to the last there is no way. */
const ENDPOINTS: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["240.0.0.1", "255.255.255.255", "192.0.2.55"],
  IPv6: ["2001:db8::5"],
};
const ROUNDS = 5;

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
