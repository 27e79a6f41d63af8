/**
 * Guests of QEMU in which proxies serve on one node with real packets: the built agent and the real kube-proxy, which
 * follows a light API server; servers and clients with many flows (`talk.c`). Their scripts have what is in
 * `functions.sh`.
 */
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { IP_FAMILIES, type IPFamily } from "@fairlead/base";
import { requireAgent, settleAgent } from "@fairlead/lab/agent";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import { FOLLOWED_KUBERNETES, kubeProxyProgram } from "@fairlead/lab/control-plane/programs";
import { countIn } from "@fairlead/lab/qemu/boot";
import { guestKernel, type KernelVersion } from "@fairlead/lab/qemu/kernel";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { endpointSlice, type RawObject, service } from "@fairlead/testkit";
import { bundleScript } from "@fairlead/tooling/bundle";
import { stringify } from "yaml";
import { IPTABLES_GUEST } from "../cost/subjects.ts";

/** The namespace of the node, and its name. */
export const NODE = "node";

const SCHEMA = "kubernetes.proto";

/** Of all programs of the test, several proxies and what they are unpacked from. */
const MEMORY_MIB = 1_536;

const MODULES = [
  ...["veth", "nf_tables", "nf_conntrack", "nf_conntrack_netlink"],
  ...["chain_nat", "nat", "masq", "ct", "numgen", "hash", "fib_ipv4", "fib_ipv6", "reject_ipv4", "reject_ipv6"].map(
    (name) => `nft_${name}`,
  ),
  ...["ip6_tables", "ip6table_nat", "ip6table_filter", "ip6table_mangle", "ip6t_REJECT"],
];

/** iptables has the legacy variant only, and is named by the machine's own names. */
const PROGRAMS = [
  ...["nft", "ip", "conntrack", "nfacct"],
  ...["iptables", "ip6tables"].flatMap((tool) => ["", "-save", "-restore"].map((end) => `${tool}-legacy${end}`)),
];

export interface NodeGuest {
  readonly modules: readonly string[];
  readonly programs: readonly string[];
  /** Lines for sh that make the network. */
  readonly network: readonly string[];
  readonly servers: readonly Server[];
  /** Of the folder /guest: configurations of agents, `objects`, which they follow from the start on, and changes. */
  readonly files: Readonly<Record<string, string>>;
  readonly kubeProxy: object;
}

interface Server {
  readonly namespace: string;
  readonly protocol: string;
  readonly port: number;
  readonly addresses: readonly string[];
}

/** Runs a script next to servers; agents follow /tmp/objects. */
export async function runInGuest(version: KernelVersion, guest: NodeGuest, lines: readonly string[]): Promise<string> {
  await requireAgent();
  const kubeProxy = await kubeProxyProgram(FOLLOWED_KUBERNETES, () => {});
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-proxies-`));
  try {
    const [agent, api] = [join(folder, "agent"), join(folder, "api")];
    await settleAgent(agent);
    await bundleApi(api);
    const script = [
      await readFile(new URL("functions.sh", import.meta.url), "utf8"),
      ...guest.network,
      ...guest.servers.map(
        ({ namespace, protocol, port, addresses }) =>
          `talk serve ${namespace} ${protocol} ${port} ${addresses.join(" ")} &`,
      ),
      "mkdir -p /tmp/objects && cp /guest/objects /tmp/objects/objects.yaml",
      ...lines,
    ].join("\n");
    const { text } = await countIn(version, {
      memoryMiB: MEMORY_MIB,
      modules: [...MODULES, ...(IPTABLES_GUEST.modules ?? []), ...guest.modules],
      programs: [process.execPath, kubeProxy, ...PROGRAMS, ...guest.programs],
      sources: [fileURLToPath(new URL("talk.c", import.meta.url))],
      libraries: IPTABLES_GUEST.libraries ?? [],
      folders: { agent, api },
      files: { ...guest.files, ...kubeProxyFiles(guest.kubeProxy) },
      script,
    });
    return text;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What takes long the first time: guests that start at the same time would each make it. */
export async function provideGuest(version: KernelVersion): Promise<void> {
  await kubeProxyProgram(FOLLOWED_KUBERNETES, () => {});
  await guestKernel(version);
}

/** What flows have lived through, as `talk ask` prints it. */
export interface Lived {
  readonly flows: number;
  readonly answers: number;
  readonly lost: number;
  readonly stalled: number;
  readonly moved: number;
}

/** `NAME flows=16 answers=900 lost=0 stalled=0 longest=12 moved=0`; what is not there is NaN. */
export function livedIn(line: string): Lived {
  const of = (name: string) => numberIn(line, name);
  return {
    flows: of("flows"),
    answers: of("answers"),
    lost: of("lost"),
    stalled: of("stalled"),
    moved: of("moved"),
  };
}

/** The number after `NAME=`; NaN where it is not there. */
export function numberIn(line: string, name: string): number {
  return Number(new RegExp(`\\b${name}=(\\d+)`).exec(line)?.[1] ?? Number.NaN);
}

/** What is printed after a key. */
export function printedAfter(text: string, key: string): string {
  const line = text.split("\n").find((one) => one.startsWith(`${key} `));
  if (line === undefined) throw new Error(`the guest printed nothing of ${key}: ${text}`);
  return line.slice(key.length + 1).trim();
}

export function configText(proxy: object, fairlead: object = {}): string {
  return manifestText([
    proxyConfig(proxy),
    { apiVersion: "fairlead.dev/v1alpha1", kind: "FairleadConfiguration", ...fairlead },
  ]);
}

export function manifestText(objects: readonly object[]): string {
  return objects.map((object) => stringify(object)).join("---\n");
}

export type ByFamily = Readonly<Record<IPFamily, string>>;
export type Protocol = "tcp" | "udp" | "sctp";

export interface Served {
  readonly clusterIP: ByFamily;
  readonly loadBalancer?: ByFamily;
  readonly nodePort?: number;
  readonly ports: Readonly<Partial<Record<Protocol, readonly [port: number, target: number]>>>;
  readonly fields?: Partial<Parameters<typeof service>[1]>;
}

export function serviceOf(name: string, { clusterIP, loadBalancer, nodePort, ports, fields }: Served): RawObject {
  const type = nodePort === undefined ? "ClusterIP" : "NodePort";
  return service(name, {
    clusterIPs: IP_FAMILIES.map((family) => clusterIP[family]),
    type: loadBalancer === undefined ? type : "LoadBalancer",
    ...(loadBalancer && { ingress: IP_FAMILIES.map((family) => ({ ip: loadBalancer[family] })) }),
    ports: portsOf(ports).map(({ port: [port, targetPort], ...named }) => {
      return { ...named, port, targetPort, ...(nodePort !== undefined && { nodePort }) };
    }),
    ...fields,
  });
}

/** Its slices, one for each family. @param kind distinguishes them from others of the service */
export function slicesOf(
  name: string,
  { ports }: Served,
  addresses: (family: IPFamily) => readonly string[],
  kind = "",
): readonly RawObject[] {
  return IP_FAMILIES.map((family) =>
    endpointSlice(`${name}${kind}-${family.toLowerCase()}`, {
      service: name,
      family,
      ports: portsOf(ports).map(({ port: [, port], ...named }) => ({ ...named, port })),
      endpoints: addresses(family).map((address) => ({ address, nodeName: NODE })),
    }),
  );
}

const PROTOCOLS = { tcp: "TCP", udp: "UDP", sctp: "SCTP" } as const;

function portsOf(ports: Served["ports"]) {
  return (Object.keys(PROTOCOLS) as Protocol[]).flatMap((name) => {
    const port = ports[name];
    return port === undefined ? [] : [{ name, protocol: PROTOCOLS[name], port }];
  });
}

function kubeProxyFiles(proxy: object): Readonly<Record<string, string>> {
  const clientConnection = { kubeconfig: "/tmp/kubeconfig", contentType: "application/json" };
  const conntrack = { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" };
  return {
    // Where the API server listens is known once it does.
    kubeconfig: kubeconfig({ server: "SERVER" }),
    "kube-proxy": manifestText([{ ...proxyConfig(proxy), clientConnection, conntrack }]),
  };
}

function proxyConfig(proxy: object) {
  const head = { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration" };
  return { ...head, hostnameOverride: NODE, ...proxy };
}

/** Namespaces without links. */
export function namespaceLines(names: readonly string[]): readonly string[] {
  return [
    ...names.flatMap((name) => [`ip netns add ${name}`, `ip -n ${name} link set lo up`]),
    `ip netns exec ${NODE} sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1`,
  ];
}

/** A link from a device of the node to one of a namespace. */
export function pairLines(device: string, namespace: string, peer: string): readonly string[] {
  return [
    `ip -n ${NODE} link add ${device} type veth peer name ${peer} netns ${namespace}`,
    `ip -n ${NODE} link set ${device} up`,
    `ip -n ${namespace} link set ${peer} up`,
  ];
}

const SUBNET = { IPv4: 24, IPv6: 64 } as const;

export function addressLine(
  namespace: string,
  device: string,
  address: string,
  family: IPFamily,
  length: number = SUBNET[family],
): string {
  return `ip -n ${namespace} addr add ${address}/${length} dev ${device}${family === "IPv6" ? " nodad" : ""}`;
}

/** The API server that kube-proxy in a guest follows, as `api.mjs` in this folder. */
async function bundleApi(folder: string): Promise<void> {
  await bundleScript({ api: fileURLToPath(new URL("api-main.ts", import.meta.url)) }, folder);
  // It reads this next to itself.
  const server = fileURLToPath(import.meta.resolve("@fairlead/testkit/api-server"));
  await copyFile(join(server, "../protobuf", SCHEMA), join(folder, SCHEMA));
}
