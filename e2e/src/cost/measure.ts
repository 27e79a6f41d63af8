/** What is counted, between which pods, in which guest, and what was counted the last time. */

import { readFile, writeFile } from "node:fs/promises";
import { COUNTING_SOURCES, type CountOptions, countIn } from "@fairlead/lab/qemu/boot";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel";
import { endpointSlice, kubernetesService, node, type RawObject, service, serviceCIDR } from "@fairlead/testkit";

type Asked = Pick<CountOptions, "script" | "files"> &
  Partial<Pick<CountOptions, "modules" | "programs" | "memoryMiB" | "libraries">>;

const MODULES = [
  ...["veth", "vxlan", "nf_tables", "nf_conntrack", "nf_conntrack_netlink", "nf_flow_table", "nf_flow_table_inet"],
  ...["chain_nat", "nat", "masq", "ct", "numgen", "hash", "fib_ipv4", "reject_ipv4", "flow_offload"].map(
    (name) => `nft_${name}`,
  ),
];

/** Boots a guest of a kernel that has `count`, `batch`, `nft` and `ip`. */
export function ask(version: KernelVersion, asked: Asked): ReturnType<typeof countIn> {
  const modules = [...MODULES, ...(asked.modules ?? [])];
  const programs = ["nft", "ip", ...(asked.programs ?? [])];
  return countIn(version, { ...asked, modules, programs, sources: COUNTING_SOURCES });
}

/** What a guest needs in addition to what nftables mode does. */
export interface GuestNeeds extends Omit<Asked, "script" | "files"> {
  /** In the node, before each subject's rules. Default: nft's. */
  readonly flush?: string;
}

export interface Measurement {
  readonly version: KernelVersion;
  readonly way: Way;
  readonly service: CountedService;
  readonly subjects: readonly Subject[];
  readonly units: readonly Unit[];
  readonly guest?: GuestNeeds;
}

/**
 * Counts what packets cost with the rules of each subject, one after the other in one guest: the instructions of the
 * client, the nodes and the server together.
 */
export async function count({
  version,
  way,
  service,
  subjects,
  units,
  guest = {},
}: Measurement): Promise<{ readonly release: string; readonly counts: GuestCounts }> {
  const { flush = "nft flush ruleset", ...more } = guest;
  const { address, port, endpoints } = service;
  const counted = (at: number) =>
    units.map(
      (unit) => `echo "${at} ${unit} $(count ${unit} ${CLIENT} ${SERVER} ${address} ${port} ${UNITS[unit].times})"`,
    );
  const lines = subjects.flatMap(({ load }, at) => [inNode(flush), ...load, ...counted(at)]);
  const script = ["count seed", ...networkLines(way, endpoints), ...lines].join("\n");
  const files = Object.assign({}, ...subjects.map((subject) => subject.files));
  const { release, text } = await ask(version, { ...more, files, script });
  const numbers = (at: number) => Object.fromEntries(units.map((unit) => [unit, printedNumber(text, `${at} ${unit}`)]));
  const counts = Object.fromEntries(subjects.map(({ name }, at) => [name, numbers(at)]));
  return { release, counts };
}

/** What is counted, and how often: so much that one more makes no difference. */
export const UNITS = {
  connect: { what: "new connection with one request", times: 200 },
  query: { what: "UDP packet from a new port, and its answer", times: 300 },
  request: { what: "request over an open connection", times: 300 },
  datagram: { what: "UDP packet", times: 3_200 },
  stream: { what: "megabyte in pieces of 64 kB", times: 10 },
  packets: { what: "megabyte in packets of 1500 bytes", times: 10 },
} as const;

export type Unit = keyof typeof UNITS;

// The keys are what it was written with.
export const ALL_UNITS = Object.keys(UNITS) as Unit[];

/** The unit for what a flowtable adds to a new flow is left out. */
export const OTHER_MODES_UNITS = ALL_UNITS.filter((unit) => unit !== "query");

/** A change of one endpoint, which is not a packet. */
export const CHANGE = "change";

/** The proxy whose rules packets meet. */
export const SUBJECTS = {
  base: "kube-proxy",
  own: "Fairlead",
  fast: "Fairlead with the fast path",
  /** With the option, a service that asks to be left out. */
  excepted: "Fairlead with the fast path, excepted service",
} as const;

/** Rules that packets meet, and how they get into the guest's node. */
export interface Subject {
  /** As tables show it. */
  readonly name: string;
  /** By name; the guest has them in /guest. */
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  /** Lines for sh. */
  readonly load: readonly string[];
}

interface CountedService {
  readonly address: string;
  /** Of TCP and UDP. */
  readonly port: number;
  readonly endpoints: readonly string[];
}

export interface Size {
  readonly services: number;
  /** Of each; the service that is counted has ten. */
  readonly endpoints: number;
}

export const COUNTED: CountedService = {
  address: "10.96.0.10",
  port: 53,
  endpoints: Array.from({ length: 10 }, (_, at) => `10.144.200.${at + 1}`),
};

type Annotations = Readonly<Record<string, string>>;

const NODE_ADDRESS = "10.201.0.10";

/**
 * What an API server has: the node, services of one TCP port, and the one that is counted.
 *
 * @param annotations of the service that is counted
 */
export function clusterOf({ services, endpoints }: Size, annotations: Annotations = {}): readonly RawObject[] {
  const others = Array.from({ length: services - 1 }, (_, index) => {
    const addresses = Array.from({ length: endpoints }, (_, at) => inTen(128, index * endpoints + at));
    return oneOf(`web-${index}`, inTen(100, index), [{ name: "http", port: 80, protocol: "TCP" }], addresses);
  });
  return [
    node("node-a", { addresses: [NODE_ADDRESS] }),
    serviceCIDR("kubernetes", ["10.96.0.0/12"]),
    ...kubernetesService(),
    ...countedObjects(COUNTED.endpoints, annotations),
    ...others.flat(),
  ];
}

export function countedObjects(endpoints: readonly string[], annotations: Annotations = {}): readonly RawObject[] {
  const { address, port } = COUNTED;
  const ports = (["TCP", "UDP"] as const).map((protocol) => ({ name: protocol.toLowerCase(), port, protocol }));
  return oneOf("counted", address, ports, endpoints, annotations);
}

function oneOf(
  name: string,
  clusterIP: string,
  ports: readonly { readonly name: string; readonly port: number; readonly protocol: "TCP" | "UDP" }[],
  addresses: readonly string[],
  annotations: Annotations = {},
): readonly RawObject[] {
  const endpoints = addresses.map((address) => ({ address, nodeName: "node-b" }));
  return [
    service(name, { clusterIPs: [clusterIP], ports, annotations }),
    endpointSlice(`${name}-0`, { service: name, family: "IPv4", ports, endpoints }),
  ];
}

/** The address of this number of 10.0.0.0/8, from 10.SECOND.1.0 on. */
function inTen(second: number, number: number): string {
  const at = number + 256;
  return `10.${second + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`;
}

/** Where the endpoints are: on the client's node, or on another one that is reached over a link or a tunnel. */
export type Way = "one node" | "routed" | "vxlan";

export const NODE = "node";
const CLIENT = "client";
const SERVER = "server";
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

export function printedNumber(text: string, words: string): number {
  const found = new RegExp(`^${words} ([\\d.]+)$`, "m").exec(text)?.[1];
  if (found === undefined)
    throw new Error(`the guest counted nothing for "${words}"; its last words:\n${text.slice(-2_000)}`);
  return Number(found);
}

/** Instructions of each unit, of each subject, in one guest. */
export type GuestCounts = Readonly<Record<string, Readonly<Record<string, number>>>>;

export interface KernelCounts {
  /** As `uname -r` says it. */
  readonly release: string;
  /** The release of kube-proxy whose rules were counted. */
  readonly kubeProxy: string;
  readonly guests: Readonly<Record<string, GuestCounts>>;
}

/** By the kernel's version. */
export type Counted = Readonly<Record<string, KernelCounts>>;

/** What `pnpm e2e --suite cost` counted the last time, guest by guest. */
const COUNTED_FILE = new URL("../../counted.json", import.meta.url);

export async function readCounted(): Promise<Counted> {
  return JSON.parse(await readFile(COUNTED_FILE, "utf8"));
}

export async function writeCounted(counted: Counted): Promise<void> {
  await writeFile(COUNTED_FILE, `${JSON.stringify(counted, undefined, 2)}\n`);
}

/** With what a guest counted in the place of what it counted before; another release of either forgets all guests. */
export function withGuest(
  counted: Counted,
  version: string,
  { release, kubeProxy }: Omit<KernelCounts, "guests">,
  name: string,
  counts: GuestCounts,
): Counted {
  const before = counted[version];
  const guests = before?.release === release && before.kubeProxy === kubeProxy ? before.guests : {};
  return { ...counted, [version]: { release, kubeProxy, guests: { ...guests, [name]: counts } } };
}

/** @returns undefined: one of the two was not counted */
export function ratioIn(guest: GuestCounts | undefined, subject: string, unit: string, of: string): number | undefined {
  const [own, base] = [guest?.[subject]?.[unit], guest?.[of]?.[unit]];
  return own === undefined || base === undefined ? undefined : own / base;
}
