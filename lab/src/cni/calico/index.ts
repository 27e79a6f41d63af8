import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { waitUntil } from "../../agent/wait-until.ts";
import type { CniFlavor, CniGround, CniNode, PodNetwork } from "../flavor.ts";
import { masqueradeOutgoing } from "../outgoing.ts";
import { blocks } from "./addresses.ts";
import { birdConfig } from "./bird-config.ts";
import { attach, detach } from "./pod.ts";

/** A routed link for each pod, and BGP between the nodes: Calico without tunnels. */
export const flavor: CniFlavor = {
  name: "calico",
  programs: [{ program: "bird", debian: "bird2" }],
  podCIDRs: blocks.podCIDRs,
  ownLoadBalancer: false,
  mtu: 1500,
  install,
};

const READY_MS = 180_000;
const FLAGS: Readonly<Record<IPFamily, string>> = { IPv4: "-4", IPv6: "-6" };

async function install(ground: CniGround): Promise<PodNetwork> {
  const { nodes, families, folder } = ground;
  await Promise.all(nodes.map((node) => setUpNode(node, ground)));
  return {
    attach: (pod) => attach(pod, families),
    detach,
    ready: async () => {
      await Promise.all(nodes.flatMap((node) => families.map((family) => routesCome(node, nodes, family))));
    },
    state: async () => Object.fromEntries((await Promise.all(nodes.map((node) => state(node, folder)))).flat()),
    dispose: async () => {},
  };
}

async function setUpNode(node: CniNode, { nodes, families, folder, daemon }: CniGround): Promise<void> {
  for (const family of families) await masqueradeOutgoing(node.runner, family, flavor);
  const config = join(folder, `${node.name}.conf`);
  const others = nodes.filter((other) => other !== node);
  await writeFile(config, birdConfig(node, others, families));
  const argv = ["bird", "-f", "-c", config, "-s", socketOf(node, folder)] as const;
  await daemon({ node, name: `${node.name}-bird`, argv: [...argv] });
}

/** @throws Error when the blocks of the other nodes do not come to be in this node's kernel */
async function routesCome({ name, runner }: CniNode, nodes: readonly CniNode[], family: IPFamily): Promise<void> {
  const wanted = nodes.filter((other) => other.name !== name).map(({ index }) => blocks.subnet(family, index));
  await waitUntil(`BIRD's routes on ${name} (${family})`, READY_MS, async () => {
    const { stdout } = await runner.run(["ip", FLAGS[family], "route", "show", "proto", "bird"]);
    return wanted.every((one) => stdout.includes(`${one} via`)) ? true : undefined;
  });
}

async function state(node: CniNode, folder: string): Promise<readonly (readonly [string, string])[]> {
  const ask = async (...words: string[]) => {
    const { stdout } = await node.runner.run(["birdc", "-s", socketOf(node, folder), "show", ...words]);
    return stdout;
  };
  const [protocols, routes] = await Promise.all([ask("protocols", "all"), ask("route", "all")]);
  return [
    [`${node.name}-protocols.txt`, protocols],
    [`${node.name}-routes.txt`, routes],
  ];
}

function socketOf({ name }: CniNode, folder: string): string {
  return join(folder, `${name}.ctl`);
}
