import { readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { createRunner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { CniNode, PodAddresses, PodNetwork, PodToAttach } from "../../../../cni/flavour.ts";
import { waitUntil } from "../../../agent/wait-until.ts";
import { applyLines } from "../../../lab/apply.ts";
import { up, veth } from "../../../lab/ip-lines.ts";
import { type Daemon, startDaemon } from "../../../support/daemon.ts";
import { installFlavour } from "../../install-flavour.ts";
import type { KindNetwork, KindNetworkGround } from "./network.ts";
import { writeConfig } from "./network.ts";
import { type PluginRequest, servePlugin } from "./plugin-server.ts";

/**
 * A flavour of e2e/cni on kind's nodes: its programs run on this machine in the nodes' networks, and a CNI plugin of two
 * lines has it connect each pod that a kubelet starts.
 */
export async function delegated(ground: KindNetworkGround, opened: AsyncDisposableStack): Promise<KindNetwork> {
  const { cluster, flavour, families, folder, sockets, configFolder } = ground;
  const nodes: readonly CniNode[] = cluster.nodes.map((node, at) => ({ ...node, index: at + 1 }));
  await addTunnelLinks(ground);
  const network = await installFlavour(flavour, { nodes, families }, folder, opened);
  const pods = new Pods(network, nodes, `${flavour.name[0] ?? "p"}`);
  opened.defer(() => pods.dispose());
  const socket = `${flavour.name}.sock`;
  const server = await servePlugin(join(sockets, socket), {
    ADD: async (request) => result(await pods.add(request), request, families, flavour.name),
    DEL: async ({ container }) => {
      await pods.remove(container);
      return {};
    },
    CHECK: async () => ({}),
  });
  opened.defer(() => server.dispose());
  for (const node of cluster.nodes) {
    const plugin = { type: "test-ground", socket: `/run/fairlead-e2e/${socket}` };
    await writeConfig(node, configFolder, flavour.name, { cniVersion: "1.0.0", name: flavour.name, plugins: [plugin] });
  }
  return network;
}

/** Each node's `eth1` beside its own address, for those who wrap packets. */
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

interface AttachedPod {
  readonly pod: PodToAttach;
  readonly holder: Daemon;
  readonly addresses: PodAddresses;
}

/** The pods of one network, by the container that holds each one's namespace. */
class Pods {
  readonly #attached = new Map<string, AttachedPod>();
  readonly #network: PodNetwork;
  readonly #nodes: readonly CniNode[];
  readonly #prefix: string;

  constructor(network: PodNetwork, nodes: readonly CniNode[], prefix: string) {
    this.#network = network;
    this.#nodes = nodes;
    this.#prefix = prefix;
  }

  async add(request: PluginRequest): Promise<PodAddresses> {
    const node = this.#nodes.find(({ name }) => name === request.node);
    if (node === undefined) throw new Error(`${request.node} is no node of this cluster`);
    const index = this.#freeIndex(node);
    const { namespace, holder } = await holdNamespace(node, request.netns);
    const runner = createRunner({ prefix: namespace.argvPrefix });
    const pod = { name: `${this.#prefix}${node.index}-${index}`, node, index, namespace, runner };
    // The index is taken from here on, whoever asks meanwhile.
    const taken = { pod, holder, addresses: {} };
    this.#attached.set(request.container, taken);
    const addresses = await this.#network.attach(pod);
    this.#attached.set(request.container, { ...taken, addresses });
    return addresses;
  }

  async remove(container: string): Promise<void> {
    const found = this.#attached.get(container);
    if (found === undefined) return;
    await this.#network.detach(found.pod).catch(() => {});
    await found.holder.stop("SIGKILL");
    this.#attached.delete(container);
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.#attached.values()].map(({ holder }) => holder.stop("SIGKILL")));
  }

  #freeIndex(node: CniNode): number {
    const taken = new Set(
      [...this.#attached.values()].filter(({ pod }) => pod.node === node).map(({ pod }) => pod.index),
    );
    for (let index = 1; ; index++) if (!taken.has(index)) return index;
  }
}

const HOLD_MS = 10_000;

/** A process in a namespace that the container runtime has made, so that interfaces can be moved there. */
async function holdNamespace(node: CniNode, path: string): Promise<{ namespace: NetworkNamespace; holder: Daemon }> {
  const file = `/proc/${node.namespace.pid}/root${path}`;
  const wanted = `net:[${(await stat(file)).ino}]`;
  const argvPrefix = ["nsenter", `--net=${file}`, "--"];
  const nothing = async () => {};
  const around = { pid: 0, as: "root", argvPrefix, env: {}, dispose: nothing, [Symbol.asyncDispose]: nothing } as const;
  const holder = await startDaemon(around, { name: "pod", argv: ["sleep", "infinity"], logFile: "/dev/null" });
  await waitUntil(`a process in ${path}`, HOLD_MS, async () => {
    const now = await readlink(`/proc/${holder.pid}/ns/net`).catch(() => "");
    return now === wanted ? true : undefined;
  });
  return { namespace: { ...around, pid: holder.pid }, holder };
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
