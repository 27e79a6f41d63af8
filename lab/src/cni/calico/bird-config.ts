import type { IPFamily } from "@fairlead/core";
import type { CniNode } from "../flavor.ts";
import { blocks } from "./addresses.ts";

/** Calico's default for all nodes: the sessions are internal. */
const AS = 64512;

const CHANNELS: Readonly<Record<IPFamily, string>> = { IPv4: "ipv4", IPv6: "ipv6" };

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
