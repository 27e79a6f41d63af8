import { readlink, stat } from "node:fs/promises";
import { createRunner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { waitUntil } from "../../../agent/wait-until.ts";
import type { CniNode, PodAddresses, PodNetwork, PodToAttach } from "../../../cni/flavor.ts";
import { type Daemon, startDaemon } from "../../../support/daemon.ts";
import type { PluginRequest } from "./plugin-server.ts";

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
    if (node === undefined) throw new Error(`${name} is no node of this cluster`);
    const place = { node, index: this.#freeIndex(node) };
    // From here on no other program gets the number, whoever asks meanwhile.
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
