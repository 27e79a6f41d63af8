import type { IPFamily } from "@fairlead/core";
import { applyLines } from "../../wire/apply.ts";
import { ANYWHERE, address, route, up, veth } from "../../wire/ip-lines.ts";
import type { PodAddresses, PodToAttach } from "../flavor.ts";
import { FIRST_POD } from "../node-subnets.ts";
import { mac, subnets } from "./addresses.ts";
import type { OvnClients } from "./clients.ts";
import { INTEGRATION, MTU } from "./switch.ts";
import { switchOf } from "./topology.ts";

/** A port on the node's bridge, and a logical one of the same name; resolves when every node has the flows for it. */
export async function attach(
  clients: OvnClients,
  pod: PodToAttach,
  families: readonly IPFamily[],
): Promise<PodAddresses> {
  const { name, node, index, namespace, runner } = pod;
  const host = hostSide(name);
  const own = mac(3, node.index, FIRST_POD + index);
  const ips = families.map((family) => [family, subnets.pod(family, node.index, index)] as const);
  await applyLines(node.runner, [veth(host, "eth0", namespace.pid), `link set ${host} mtu ${MTU}`, up(host)]);
  await applyLines(runner, [
    `link set eth0 mtu ${MTU} address ${own}`,
    up("eth0"),
    ...ips.flatMap(([family, ip]) => [
      address("eth0", `${ip}/${subnets.length[family]}`),
      route(ANYWHERE[family], { via: subnets.address(family, node.index, 1) }),
    ]),
  ]);
  // The userspace datapath takes packets as they are: nobody behind it would fill in checksums or cut what is too long.
  await runner.run(["ethtool", "-K", "eth0", "tx", "off"]);
  const iface = ["set", "interface", host, `external_ids:iface-id=${name}`];
  await clients.vswitch(node, "add-port", INTEGRATION, host, "--", ...iface);
  const addresses = [own, ...ips.map(([, ip]) => ip)].join(" ");
  await clients.northbound([
    ["lsp-add", switchOf(node.index), name],
    ["lsp-set-addresses", name, addresses],
    ["lsp-set-port-security", name, addresses],
  ]);
  await clients.northbound([["wait-until", "logical_switch_port", name, "up=true"]]);
  await clients.northbound([["sync"]], "hv");
  return Object.fromEntries(ips);
}

export async function detach(clients: OvnClients, { name, node }: PodToAttach): Promise<void> {
  await clients.northbound([["--if-exists", "lsp-del", name]]);
  await clients.vswitch(node, "--if-exists", "del-port", INTEGRATION, hostSide(name));
  await node.runner.run(["ip", "link", "delete", hostSide(name)]);
}

function hostSide(pod: string): string {
  return `ov-${pod}`;
}
