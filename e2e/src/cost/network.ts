/** A client's pod, and one with all endpoints, as lines for sh. Devices are routed veths. */

/** Where the endpoints are: on the client's node, or on another one that is reached over a link or a tunnel. */
export type Way = "one node" | "routed" | "vxlan";

export const NODE = "node";
export const CLIENT = "client";
export const SERVER = "server";
const FAR = "far";

const TO_CLIENT = "to-client";
const CLIENT_ADDRESS = "10.144.2.2";

/** The devices of the client's node that packets come in by. */
export const DEVICES: Readonly<Record<Way, readonly [string, string]>> = {
  "one node": [TO_CLIENT, "to-server"],
  routed: [TO_CLIENT, "uplink"],
  vxlan: [TO_CLIENT, "tunnel"],
};

export function networkLines(way: Way, endpoints: readonly string[]): readonly string[] {
  const serverNode = way === "one node" ? NODE : FAR;
  return [
    ...[NODE, CLIENT, SERVER, ...(way === "one node" ? [] : [FAR])].flatMap((name) => [
      `ip netns add ${name}`,
      `ip -n ${name} link set lo up`,
    ]),
    ...pair(NODE, TO_CLIENT, CLIENT, [CLIENT_ADDRESS]),
    ...pair(serverNode, "to-server", SERVER, endpoints),
    ...new Set([NODE, serverNode].map((name) => `ip netns exec ${name} sysctl -q -w net.ipv4.ip_forward=1`)),
    ...[CLIENT, SERVER].map((name) => `ip netns exec ${name} sysctl -q -w net.ipv4.tcp_tw_reuse=1`),
    ...(way === "one node" ? [] : between(way, endpoints)),
  ];
}

export function inNode(command: string): string {
  return `ip netns exec ${NODE} ${command}`;
}

/** The addresses have no subnets: each has a route. */
function pair(node: string, device: string, name: string, addresses: readonly string[]): readonly string[] {
  return [
    `ip -n ${node} link add ${device} type veth peer name eth0 netns ${name}`,
    `ip -n ${node} link set ${device} up`,
    `ip -n ${name} link set eth0 up`,
    `ip -n ${node} addr add 169.254.${name.length}.1/32 dev ${device}`,
    ...addresses.flatMap((address) => [
      `ip -n ${name} addr add ${address}/32 dev eth0`,
      `ip -n ${node} route add ${address} dev ${device}`,
    ]),
    `ip -n ${name} route add 169.254.${name.length}.1 dev eth0`,
    `ip -n ${name} route add default via 169.254.${name.length}.1 dev eth0`,
  ];
}

/** What a vxlan device leaves of 1500 bytes. */
const TUNNEL_MTU = 1450;

function between(way: Exclude<Way, "one node">, endpoints: readonly string[]): readonly string[] {
  const ends = [
    { name: NODE, own: 1, other: 2, pods: endpoints },
    { name: FAR, own: 2, other: 1, pods: [CLIENT_ADDRESS] },
  ];
  const [device] = way === "routed" ? ["uplink"] : ["tunnel"];
  return [
    `ip -n ${NODE} link add uplink type veth peer name uplink netns ${FAR}`,
    ...ends.flatMap(({ name, own, other, pods }) => [
      `ip -n ${name} addr add 172.30.0.${own}/24 dev uplink`,
      `ip -n ${name} link set uplink up`,
      ...(way === "vxlan" ? tunnel(name, own, other) : []),
      ...pods.map(
        (pod) => `ip -n ${name} route add ${pod} via 172.30.${way === "vxlan" ? 1 : 0}.${other} dev ${device}`,
      ),
    ]),
    ...(way === "vxlan" ? [CLIENT, SERVER].map((name) => `ip -n ${name} link set eth0 mtu ${TUNNEL_MTU}`) : []),
  ];
}

function tunnel(name: string, own: number, other: number): readonly string[] {
  const ends = `local 172.30.0.${own} remote 172.30.0.${other} dstport 8472 dev uplink`;
  return [
    `ip -n ${name} link add tunnel type vxlan id 1 ${ends}`,
    `ip -n ${name} link set tunnel mtu ${TUNNEL_MTU}`,
    `ip -n ${name} addr add 172.30.1.${own}/24 dev tunnel`,
    `ip -n ${name} link set tunnel up`,
  ];
}
