import type { IPFamily } from "@fairlead/core";
import { applyLines, applySettings } from "../../wire/apply.ts";
import { ANYWHERE, address, type IpLines, route, up } from "../../wire/ip-lines.ts";
import type { PodAddresses, PodToAttach } from "../flavor.ts";
import { blocks } from "./addresses.ts";

/**
 * The same on every link: the node answers for an address that nobody has, and in IPv6 has the one that its MAC makes.
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

/** Felix and BIRD tell pods' links by the prefix. */
function hostSide(pod: string): string {
  return `cali${pod}`;
}
