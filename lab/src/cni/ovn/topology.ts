import type { IPFamily } from "@fairlead/core";
import type { CniNode } from "../flavor.ts";
import { JOIN_CIDRS, JOIN_LENGTH, joinNode, joinRouter, mac, subnets } from "./addresses.ts";

/** A command of ovn-nbctl with its arguments. */
export type NbCommand = readonly string[];

const ROUTER = "fairlead-router";
const JOIN = "join";
const MATCHES: Readonly<Record<IPFamily, string>> = { IPv4: "ip4", IPv6: "ip6" };
const EVERYTHING: Readonly<Record<IPFamily, string>> = { IPv4: "0.0.0.0/0", IPv6: "::/0" };

/**
 * As kube-ovn lays it out: one router, a logical switch for each node's pods, and a switch `join` on which every node
 * has a port. What is for pods stays within, all else goes out through the pod's own node.
 */
export function topology(nodes: readonly CniNode[], families: readonly IPFamily[]): readonly NbCommand[] {
  return [
    ["lr-add", ROUTER],
    ["ls-add", JOIN],
    ...routerPort(
      JOIN,
      mac(2, 0),
      families.map((family) => `${joinRouter(family)}/${JOIN_LENGTH[family]}`),
    ),
    ...families.flatMap(policiesForAll),
    ...nodes.flatMap((node) => nodeCommands(node, families)),
  ];
}

export function switchOf(node: number): string {
  return `pods-${node}`;
}

export function nodePort(node: number): string {
  return `node-port-${node}`;
}

function nodeCommands({ index, addresses }: CniNode, families: readonly IPFamily[]): readonly NbCommand[] {
  const joins = families.map((family) => joinNode(family, index));
  const gateways = families.map((family) => `${subnets.address(family, index, 1)}/${subnets.length[family]}`);
  return [
    ["ls-add", switchOf(index)],
    ...routerPort(switchOf(index), mac(2, index), gateways),
    ["lsp-add", JOIN, nodePort(index)],
    ["lsp-set-addresses", nodePort(index), [mac(1, index), ...joins].join(" ")],
    ...families.flatMap((family) => policiesOfNode(index, family, addresses[family])),
  ];
}

function routerPort(name: string, address: string, networks: readonly string[]): readonly NbCommand[] {
  const [atRouter, atSwitch] = [`router-${name}`, `${name}-router`];
  return [
    ["lrp-add", ROUTER, atRouter, address, ...networks],
    ["lsp-add", name, atSwitch],
    ["lsp-set-type", atSwitch, "router"],
    ["lsp-set-addresses", atSwitch, "router"],
    ["lsp-set-options", atSwitch, `router-port=${atRouter}`],
  ];
}

function policiesForAll(family: IPFamily): readonly NbCommand[] {
  const to = (cidr: string) => `${MATCHES[family]}.dst == ${cidr}`;
  return [
    // Without any route a packet never comes to the policies.
    ["lr-route-add", ROUTER, EVERYTHING[family], joinRouter(family)],
    ["lr-policy-add", ROUTER, "31000", to(subnets.podCIDRs[family]), "allow"],
    ["lr-policy-add", ROUTER, "31000", to(JOIN_CIDRS[family]), "allow"],
  ];
}

function policiesOfNode(index: number, family: IPFamily, address: string | undefined): readonly NbCommand[] {
  const join = joinNode(family, index);
  const ip = MATCHES[family];
  return [
    ["lr-policy-add", ROUTER, "30000", `${ip}.dst == ${address}`, "reroute", join],
    ["lr-policy-add", ROUTER, "29000", `${ip}.src == ${subnets.subnet(family, index)}`, "reroute", join],
  ];
}
