/** A client's pod and one with all endpoints on one node, by routed veths, as lines for sh. */

const NODE = "node";
export const CLIENT = "client";
export const SERVER = "server";
export const DEVICES = ["to-client", "to-server"] as const;

const CLIENT_ADDRESS = "10.144.2.2";

export function networkLines(endpoints: readonly string[]): readonly string[] {
  const [toClient, toServer] = DEVICES;
  return [
    ...[NODE, CLIENT, SERVER].flatMap((name) => [`ip netns add ${name}`, `ip -n ${name} link set lo up`]),
    ...pair(toClient, CLIENT, [CLIENT_ADDRESS]),
    ...pair(toServer, SERVER, endpoints),
    inNode("sysctl -q -w net.ipv4.ip_forward=1"),
    ...[CLIENT, SERVER].map((name) => `ip netns exec ${name} sysctl -q -w net.ipv4.tcp_tw_reuse=1`),
  ];
}

export function inNode(command: string): string {
  return `ip netns exec ${NODE} ${command}`;
}

/** The addresses have no subnets: each has a route. */
function pair(device: string, name: string, addresses: readonly string[]): readonly string[] {
  return [
    `ip -n ${NODE} link add ${device} type veth peer name eth0 netns ${name}`,
    `ip -n ${NODE} link set ${device} up`,
    `ip -n ${name} link set eth0 up`,
    `ip -n ${NODE} addr add 169.254.${name.length}.1/32 dev ${device}`,
    ...addresses.flatMap((address) => [
      `ip -n ${name} addr add ${address}/32 dev eth0`,
      `ip -n ${NODE} route add ${address} dev ${device}`,
    ]),
    `ip -n ${name} route add 169.254.${name.length}.1 dev eth0`,
    `ip -n ${name} route add default via 169.254.${name.length}.1 dev eth0`,
  ];
}
