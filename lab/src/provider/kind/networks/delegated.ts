/** Pod networks whose programs run in DaemonSets, and whose pods this process connects. */

import { once } from "node:events";
import { readlink, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import type { IPFamily } from "@fairlead/core";
import { createRunner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { CniFlavor, CniGround, CniNode, PodAddresses, PodNetwork, PodToAttach } from "../../../cni/flavor.ts";
import type { ApiClient, ApiObject } from "../../../control-plane/api-client.ts";
import { type Daemon, messageOf, startDaemon } from "../../../support/processes.ts";
import { waitUntil } from "../../../support/wait-until.ts";
import { applyLines, applySettings, up, veth } from "../../../wire.ts";
import { host } from "../../netns/ground.ts";
import { daemonsHere, installFlavor } from "../../provider.ts";
import { PATIENCE_MS } from "../kind-cluster.ts";
import { networkOf } from "../machine.ts";
import { imageName, type KindNetwork, type KindNetworkGround, networkImage, writeConfig } from "./network.ts";

const SOCKET = "plugin.sock";

/**
 * A flavor of lab/src/cni on kind's nodes: its programs run in DaemonSets of an image of their Debian packages. The
 * flavor configures them from this machine, and a CNI plugin of two lines has it connect each pod that a kubelet
 * starts.
 */
export async function delegated(ground: KindNetworkGround, opened: AsyncDisposableStack): Promise<KindNetwork> {
  const { cluster, flavor, families, folder, nodeFolder, configFolder } = ground;
  const nodes: readonly CniNode[] = cluster.nodes.map((node, at) => ({ ...node, index: at + 1 }));
  await addTunnelLinks(ground);
  const daemon = await daemons(ground, opened);
  const network = await installFlavor(flavor, { nodes, families, folder, daemon }, opened);
  const attach: PodNetwork["attach"] = async (pod) => {
    await applySettings(pod.runner, host);
    return network.attach(pod);
  };
  const pods = new AttachedPods({ ...network, attach }, nodes, flavor.name[0] ?? "p");
  opened.defer(() => pods.dispose());
  const server = await servePlugin(join(folder, SOCKET), {
    ADD: async (request) => result(await pods.add(request), request, families, flavor.name),
    DEL: async ({ container }) => {
      await pods.remove(container);
      return {};
    },
    CHECK: async () => ({}),
  });
  opened.defer(() => server.dispose());
  for (const node of cluster.nodes) {
    const plugin = { type: "test-ground", socket: join(nodeFolder, SOCKET) };
    await writeConfig(node, configFolder, flavor.name, plugin);
  }
  return { ...network, state: async () => ({ ...(await network.state()), ...(await logs(ground)) }) };
}

/** What the daemons of one pod network have in common. */
interface DaemonSetFields {
  /** The network's name. */
  readonly network: string;
  readonly image: string;
  /** The network's folder on this machine: pods have it at the same path. */
  readonly folder: string;
  /** The same folder on the nodes. */
  readonly nodeFolder: string;
}

const PODS = "/api/v1/namespaces/kube-system/pods";

const PAUSE_MS = 200;

/**
 * Runs a network's daemons in DaemonSets, one for each kind of daemon: it is on the nodes that have its label. A daemon
 * that is asked for on one more node is one more label.
 */
export function daemonsInPods(fields: DaemonSetFields, api: ApiClient): CniGround["daemon"] {
  const made = new Map<string, Promise<unknown>>();
  return async (daemon) => {
    const object = daemonSet(fields, daemon);
    const { name } = object.metadata;
    const making = made.get(name) ?? api.create(object);
    made.set(name, making);
    await making;
    await api.patch(`/api/v1/nodes/${daemon.node.name}`, { metadata: { labels: { [labelOf(name)]: "" } } });
    const of = `labelSelector=app%3D${name}&fieldSelector=spec.nodeName%3D${daemon.node.name}`;
    const started = async () => {
      const { items } = (await api.get(`${PODS}?${of}`)) as PodList;
      return items.some(({ status }) => status?.containerStatuses?.[0]?.ready === true) ? true : undefined;
    };
    await waitUntil(`the start of ${name} on ${daemon.node.name}`, PATIENCE_MS, started, PAUSE_MS);
  };
}

type FlavorDaemon = Parameters<CniGround["daemon"]>[0];

const NETWORK_LABEL = "fairlead.dev/e2e-network";

/** A daemon's arguments are the same on every node, except for the node's name, which the pod knows. */
export function daemonSet(fields: DaemonSetFields, { node, name, argv, env = {} }: FlavorDaemon): ApiObject {
  const { network, image, folder, nodeFolder } = fields;
  const part = name.startsWith(`${node.name}-`) ? name.slice(node.name.length + 1) : name;
  const own = `${network}-${part}`;
  const labels = { app: own, [NETWORK_LABEL]: network };
  const anyNode = (text: string) => text.replaceAll(whole(node.name), "$(NODE_NAME)");
  const container = {
    name: part,
    image,
    command: argv.map(anyNode),
    env: [
      { name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
      ...Object.entries(env).map(([key, value]) => ({ name: key, value: anyNode(value) })),
    ],
    securityContext: { privileged: true },
    volumeMounts: [{ name: "folder", mountPath: folder }],
  };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: own, namespace: "kube-system", labels },
    spec: {
      selector: { matchLabels: { app: own } },
      template: {
        metadata: { labels },
        spec: {
          hostNetwork: true,
          automountServiceAccountToken: false,
          priorityClassName: "system-node-critical",
          nodeSelector: { [labelOf(own)]: "" },
          tolerations: [{ operator: "Exists" }],
          containers: [container],
          volumes: [{ name: "folder", hostPath: { path: nodeFolder } }],
        },
      },
    },
  };
}

/** A pod's number on its node, and what is there of the pod already. */
interface AttachedPod {
  readonly node: CniNode;
  readonly index: number;
  readonly holder?: Daemon;
  readonly pod?: PodToAttach;
}

/** The pods of one network, by the container that holds each one's namespace. */
export class AttachedPods {
  readonly #places = new Map<string, AttachedPod>();
  readonly #network: Pick<PodNetwork, "attach" | "detach">;
  readonly #nodes: readonly CniNode[];
  readonly #prefix: string;

  /** @param prefix of the pods' names in this network; a letter */
  constructor(network: Pick<PodNetwork, "attach" | "detach">, nodes: readonly CniNode[], prefix: string) {
    this.#network = network;
    this.#nodes = nodes;
    this.#prefix = prefix;
  }

  /** @throws Error when it cannot be connected; its number is free again after `remove` */
  async add({ container, node: name, netns }: PluginRequest): Promise<PodAddresses> {
    const node = this.#nodes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`${name} is not a node of this cluster`);
    const place = { node, index: this.#freeIndex(node) };
    // From here on no other pod gets the number.
    this.#places.set(container, place);
    const { namespace, holder } = await holdNamespace(node, netns);
    this.#places.set(container, { ...place, holder });
    const runner = createRunner({ prefix: namespace.argvPrefix });
    const pod = { ...place, name: `${this.#prefix}${node.index}-${place.index}`, namespace, runner };
    this.#places.set(container, { ...place, holder, pod });
    return this.#network.attach(pod);
  }

  async remove(container: string): Promise<void> {
    const { pod, holder } = this.#places.get(container) ?? {};
    // What was never finished, or went with its namespace, is taken back as far as it is there.
    if (pod !== undefined) await this.#network.detach(pod).catch(() => {});
    await holder?.stop("SIGKILL");
    this.#places.delete(container);
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.#places.values()].map(({ holder }) => holder?.stop("SIGKILL")));
  }

  #freeIndex(node: CniNode): number {
    const taken = new Set([...this.#places.values()].filter((one) => one.node === node).map(({ index }) => index));
    for (let index = 1; ; index++) if (!taken.has(index)) return index;
  }
}

/** What the CNI plugin on a node asks for a pod. */
export interface PluginRequest {
  readonly node: string;
  /** The container's id: ADD and DEL of a pod have the same. */
  readonly container: string;
  /** Where the pod's namespace is mounted on the node; empty when it is gone. */
  readonly netns: string;
}

type PluginCommand = (request: PluginRequest) => Promise<unknown>;

/** Answers the plugins of all nodes at a unix socket: a command each path; an error as the specification wants it. */
export async function servePlugin(socket: string, commands: Readonly<Record<string, PluginCommand>>) {
  const server = createServer(async (request, response) => {
    try {
      const command = commands[(request.url ?? "").slice(1)];
      if (command === undefined) throw new Error(`${request.url} is not a command`);
      const answer = await command((await json(request)) as PluginRequest);
      response.end(JSON.stringify(answer));
    } catch (error) {
      response.statusCode = 500;
      response.end(JSON.stringify({ cniVersion: "1.0.0", code: 999, msg: messageOf(error) }));
    }
  });
  server.listen(socket);
  await once(server, "listening");
  return {
    dispose: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** What is of the flavor's packages runs in pods, the test ground's own programs on this machine. */
async function daemons(ground: KindNetworkGround, opened: AsyncDisposableStack): Promise<CniGround["daemon"]> {
  const { cluster, api, flavor, folder, nodeFolder, progress } = ground;
  const here = daemonsHere(folder, opened);
  if (flavor.programs.length === 0) return here;
  const image = { name: flavor.name, packages: packagesOf(flavor) };
  await cluster.loadImage(await networkImage(image, progress));
  const inPods = daemonsInPods({ network: flavor.name, image: imageName(image), folder, nodeFolder }, api);
  const programs = flavor.programs.map(({ program }) => program);
  return (daemon) => (programs.includes(daemon.argv[0]) ? inPods(daemon) : here(daemon));
}

function packagesOf({ programs }: CniFlavor): readonly string[] {
  return [...new Set(programs.map(({ debian }) => debian))];
}

async function logs({ cluster, flavor }: KindNetworkGround): Promise<Readonly<Record<string, string>>> {
  const selector = `${NETWORK_LABEL}=${flavor.name}`;
  const { stdout } = await cluster.kubectl(["-n", "kube-system", "logs", "-l", selector, "--prefix", "--tail=-1"]);
  return { "pods.log": stdout };
}

/** Each node's `eth1` alongside its own address, for networks that wrap packets. */
async function addTunnelLinks({ cluster, machine }: KindNetworkGround): Promise<void> {
  for (const [at, node] of cluster.nodes.entries()) {
    const there = await node.runner.run(["ip", "link", "show", "eth1"]).then(
      () => true,
      () => false,
    );
    if (there) continue;
    const name = `tunnel-${at}`;
    await applyLines(machine.network.runner, [
      veth(name, "eth1", node.namespace.pid),
      `link set ${name} master br0`,
      up(name),
    ]);
    await applyLines(node.runner, [up("eth1")]);
  }
}

/** What the specification wants of ADD. */
function result(addresses: PodAddresses, { netns }: PluginRequest, families: readonly IPFamily[], network: string) {
  const ips = families.map((family) => {
    const address = addresses[family];
    if (address === undefined) throw new Error(`${network} gave the pod no ${family} address`);
    return { address: `${address}/${family === "IPv4" ? 32 : 128}`, interface: 0 };
  });
  return { cniVersion: "1.0.0", interfaces: [{ name: "eth0", sandbox: netns }], ips };
}

interface PodList {
  readonly items: readonly {
    readonly status?: { readonly containerStatuses?: readonly { readonly ready: boolean }[] };
  }[];
}

function labelOf(daemonSetName: string): string {
  return `fairlead.dev/e2e-${daemonSetName}`;
}

/** One node's name may be the beginning of another's. */
function whole(name: string): RegExp {
  return new RegExp(`(?<![\\w-])${name}(?![\\w-])`, "g");
}

/** A process in a namespace that the container runtime has made, so that interfaces can be moved there. */
async function holdNamespace(node: CniNode, path: string): Promise<{ namespace: NetworkNamespace; holder: Daemon }> {
  const file = `/proc/${node.namespace.pid}/root${path}`;
  const wanted = `net:[${(await stat(file)).ino}]`;
  const { namespace: around } = networkOf(0, file);
  const holder = await startDaemon(around, { name: "pod", argv: ["sleep", "infinity"], logFile: "/dev/null" });
  await waitUntil(`a process in ${path}`, PATIENCE_MS, async () => {
    const now = await readlink(`/proc/${holder.pid}/ns/net`).catch(() => "");
    return now === wanted ? true : undefined;
  });
  return { namespace: { ...around, pid: holder.pid }, holder };
}
