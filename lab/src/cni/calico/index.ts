import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { START_MS, waitUntil } from "../../support/wait-until.ts";
import { ANYWHERE, address, applyLines, applySettings, type IpLines, route, up } from "../../wire.ts";
import {
  type CniFlavor,
  type CniGround,
  type CniNode,
  masqueradeOutgoing,
  nodeSubnets,
  type PodAddresses,
  type PodNetwork,
  type PodToAttach,
} from "../flavor.ts";

/** The IP pool of each family, and the block that a node has of it; no address of a block is the node's. */
export const blocks = nodeSubnets("10.144", "fd00:144::", 120);

/** Calico's default for all nodes: the sessions are internal. */
const AS = 64512;

const CHANNELS: Readonly<Record<IPFamily, string>> = { IPv4: "ipv4", IPv6: "ipv6" };

/** A routed link for each pod, and BGP between the nodes: Calico without tunnels. */
export const flavor: CniFlavor = {
  name: "calico",
  programs: [{ program: "bird", debian: "bird2" }],
  podCIDRs: blocks.podCIDRs,
  ownLoadBalancer: false,
  mtu: 1500,
  install,
};

/**
 * BIRD 2 on one node as Calico sets it up: a mesh of all nodes, each announces its block, and what comes of the others
 * goes into the kernel. The node's own block is a blackhole alongside the routes of its pods, so that nothing for a pod
 * that is gone leaves the node.
 */
export function birdConfig(node: CniNode, others: readonly CniNode[], families: readonly IPFamily[]): string {
  return [
    "log stderr all;",
    // A number that only has to be unique; nodes without IPv4 need one too.
    `router id ${node.addresses.IPv4 ?? `10.144.${node.index}.1`};`,
    "protocol device { scan time 1; }",
    `protocol direct { ${families.map((family) => `${CHANNELS[family]};`).join(" ")} interface -"cali*", "*"; }`,
    ...families.flatMap((family) => [
      ...tables(node, family),
      ...others.map((other) => session(node, other, family)),
      "",
    ]),
  ].join("\n");
}

/**
 * The same on every link: the node answers for an address that no host has, and in IPv6 has the one that its MAC makes.
 */
const HOST_MAC = "ee:ee:ee:ee:ee:ee";
const GATEWAY_IPV4 = "169.254.1.1";
const GATEWAY_IPV6 = "fe80::ecee:eeff:feee:eeee";

const podSide: Readonly<Record<IPFamily, (pod: string) => IpLines>> = {
  IPv4: (pod) => [
    address("eth0", `${pod}/32`),
    route(GATEWAY_IPV4, { dev: "eth0" }),
    route(ANYWHERE.IPv4, { via: GATEWAY_IPV4, dev: "eth0" }),
  ],
  IPv6: (pod) => [address("eth0", `${pod}/128`), route(ANYWHERE.IPv6, { via: GATEWAY_IPV6, dev: "eth0" })],
};

/** A routed link: the node has a route to the pod only, the pod has the node as gateway for everything. */
export async function attach(pod: PodToAttach, families: readonly IPFamily[]): Promise<PodAddresses> {
  const { name, node, index, namespace, runner } = pod;
  const host = hostSide(name);
  const own = families.map((family) => [family, blocks.pod(family, node.index, index)] as const);
  await applyLines(node.runner, [
    `link add ${host} address ${HOST_MAC} type veth peer name eth0 netns ${namespace.pid}`,
  ]);
  await applySettings(node.runner, hostSettings(host));
  await applyLines(node.runner, [up(host), ...own.map(([, ip]) => route(ip, { dev: host }))]);
  await applyLines(runner, [up("eth0"), ...own.flatMap(([family, ip]) => podSide[family](ip))]);
  return Object.fromEntries(own);
}

export async function detach({ name, node }: PodToAttach): Promise<void> {
  await node.runner.run(["ip", "link", "delete", hostSide(name)]);
}

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

async function routesCome({ name, runner }: CniNode, nodes: readonly CniNode[], family: IPFamily): Promise<void> {
  const wanted = nodes.filter((other) => other.name !== name).map(({ index }) => blocks.subnet(family, index));
  await waitUntil(`BIRD's routes on ${name} (${family})`, START_MS, async () => {
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

function tables({ index }: CniNode, family: IPFamily): readonly string[] {
  const channel = CHANNELS[family];
  const own = blocks.subnet(family, index);
  return [
    `protocol static own_block_${channel} { ${channel}; route ${own} blackhole; }`,
    `filter announced_${channel} { if net = ${own} then accept; if net ~ ${own} then reject; if net ~ ${blocks.podCIDRs[family]} then accept; reject; }`,
    `filter programmed_${channel} { if source ~ [ RTS_BGP, RTS_STATIC ] then accept; reject; }`,
    `protocol kernel kernel_${channel} { learn; persist; scan time 1; ${channel} { import all; export filter programmed_${channel}; }; }`,
  ];
}

function session({ addresses }: CniNode, other: CniNode, family: IPFamily): string {
  const channel = CHANNELS[family];
  const patience = "connect delay time 1; connect retry time 1; error wait time 1, 3;";
  return [
    `protocol bgp mesh_${other.index}_${channel} {`,
    `  local ${addresses[family]} as ${AS}; neighbor ${other.addresses[family]} as ${AS}; multihop; ${patience}`,
    `  ${channel} { import all; export filter announced_${channel}; gateway recursive; };`,
    "}",
  ].join("\n");
}

/** As Felix sets them for every pod's link. */
function hostSettings(host: string): Readonly<Record<string, string>> {
  return {
    [`net/ipv4/conf/${host}/proxy_arp`]: "1",
    [`net/ipv4/neigh/${host}/proxy_delay`]: "0",
    [`net/ipv4/conf/${host}/rp_filter`]: "1",
    [`net/ipv4/conf/${host}/route_localnet`]: "1",
    [`net/ipv6/conf/${host}/proxy_ndp`]: "1",
  };
}

/** Felix and BIRD recognize pods' links by the prefix. */
function hostSide(pod: string): string {
  return `cali${pod}`;
}
