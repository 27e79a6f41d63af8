import { appendFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { errorChainText, errorCode, fieldsOf, itemsOf, numberOf, stringOf, valueAt } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Argv } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { ApiClient } from "../../control-plane/api-client.ts";
import type { Certificate } from "../../control-plane/control-plane.ts";
import { type Daemon, orDispose, startDaemon } from "../../support/processes.ts";
import { startScript } from "../../support/script.ts";
import type { GroundNode } from "./ground.ts";
import { podStatus } from "./pods.ts";

const SERVER = fileURLToPath(new URL("kubelet-main.ts", import.meta.url));
const PAUSE_MS = 100;
const WITH_RESOLVER = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"';

/** Where a pod of the API is to run. */
interface PodPlace {
  readonly namespace: NetworkNamespace;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
}

export interface KubeletParts {
  readonly nodes: readonly GroundNode[];
  readonly api: ApiClient;
  readonly certificate: Certificate;
  /** For logs. */
  readonly folder: string;
  /** The address of the server that pods ask for names; absent: the machine's. */
  readonly dns?: string;
  /** Makes a namespace on a node's pod network. @param undo gets what takes it away */
  readonly place: (node: GroundNode, undo: AsyncDisposableStack) => Promise<PodPlace>;
}

interface RunningPod {
  readonly place: PodPlace;
  readonly containers: readonly { readonly daemon: Daemon; readonly port: number | undefined }[];
  readonly undo: AsyncDisposableStack;
  ready: boolean;
  ending: boolean;
}

/**
 * Runs the containers of one namespace's Pods as processes, in namespaces of their own or in their node's: `node` is
 * this process's, images do not matter. Pods are ready when the ports of their readiness probes are open; those that
 * are deleted get SIGTERM and go with their processes. Logs are served as a kubelet serves them.
 */
export function startKubelet(parts: KubeletParts, podNamespace: string): Promise<{ dispose(): Promise<void> }> {
  return orDispose(async (opened) => {
    await mkdir(parts.folder, { recursive: true });
    const { certFile, keyFile } = parts.certificate;
    for (const { namespace } of parts.nodes) {
      const server = await startScript(namespace, SERVER, [parts.folder, certFile, keyFile]);
      opened.defer(() => server.stop());
    }
    const kubelet = new Kubelet(parts, podNamespace);
    const stop = new AbortController();
    const following = kubelet.follow(stop.signal);
    opened.defer(async () => {
      stop.abort();
      await following;
      await kubelet.dispose();
    });
    const kept = opened.move();
    return { dispose: () => kept.disposeAsync() };
  });
}

class Kubelet {
  readonly #parts: KubeletParts;
  readonly #path: string;
  readonly #running = new Map<string, RunningPod>();
  readonly #starting = new Map<string, Promise<void>>();

  /** For the artifacts of a failed run. */
  readonly #note = async (error: unknown): Promise<void> => {
    await appendFile(join(this.#parts.folder, "kubelet.log"), `${new Date().toISOString()} ${errorChainText(error)}\n`);
  };

  constructor(parts: KubeletParts, namespace: string) {
    this.#parts = parts;
    this.#path = `/api/v1/namespaces/${namespace}/pods`;
  }

  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // The API server may be away.
      const list = await this.#parts.api.get(this.#path).catch(() => undefined);
      if (list !== undefined) await this.#reconcile(itemsOf(fieldsOf(list)["items"])).catch(this.#note);
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
    await Promise.allSettled(this.#starting.values());
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ undo }) => undo.disposeAsync()));
    await rm(this.#parts.folder, { recursive: true, force: true });
  }

  async #reconcile(pods: readonly unknown[]): Promise<void> {
    const there = new Set<string>();
    for (const pod of pods) {
      const uid = stringOf(valueAt(pod, "metadata", "uid")) ?? "";
      there.add(uid);
      const running = this.#running.get(uid);
      if (running === undefined) this.#begin(uid, pod);
      else if (valueAt(pod, "metadata", "deletionTimestamp") !== undefined) this.#end(running, pod);
      else if (!running.ready && (await isReady(running))) {
        // What the API server does not take now it takes at the next look.
        running.ready = await this.#setStatus(pod, running, true);
      }
    }
    for (const [uid, { undo }] of this.#running) {
      if (there.has(uid)) continue;
      this.#running.delete(uid);
      // Others do not wait for it.
      this.#starting.set(uid, undo.disposeAsync().catch(this.#note));
    }
  }

  #begin(uid: string, pod: unknown): void {
    if (this.#starting.has(uid)) return;
    const started = this.#start(uid, pod).catch(this.#note);
    this.#starting.set(uid, started);
  }

  #start(uid: string, pod: unknown): Promise<void> {
    const node = this.#parts.nodes.find(({ name }) => name === valueAt(pod, "spec", "nodeName"));
    if (node === undefined) return Promise.resolve();
    return orDispose(async (undo) => {
      const isHost = valueAt(pod, "spec", "hostNetwork") === true;
      const place = isHost
        ? { namespace: node.namespace, addresses: node.addresses }
        : await this.#parts.place(node, undo);
      const containers = await Promise.all(
        itemsOf(valueAt(pod, "spec", "containers")).map((container) => this.#container(pod, container, place)),
      );
      undo.defer(async () => void (await Promise.all(containers.map(({ daemon }) => daemon.stop("SIGKILL")))));
      const running: RunningPod = { place, containers, undo: undo.move(), ready: false, ending: false };
      // Before it is looked at: what is written later counts.
      await this.#setStatus(pod, running, false);
      this.#running.set(uid, running);
    });
  }

  async #container(pod: unknown, container: unknown, { namespace }: PodPlace) {
    const name = stringOf(fieldsOf(container)["name"]) ?? "";
    const [, ...args] = itemsOf(fieldsOf(container)["command"]).map(String);
    const resolver = await this.#resolver(pod);
    const [program = process.execPath, ...rest] = [...resolver, process.execPath, ...args];
    const argv: Argv = [program, ...rest];
    const { namespace: of, name: podName } = fieldsOf(fieldsOf(pod)["metadata"]);
    const logFile = join(this.#parts.folder, `${of}_${podName}_${name}.log`);
    // A pod of that name may have run before.
    await rm(logFile, { force: true });
    const daemon = await startDaemon(namespace, { name, argv, logFile });
    return { daemon, port: numberOf(valueAt(container, "readinessProbe", "httpGet", "port")) };
  }

  /** What a pod of the pod network is started by, so that it has a file of its own where the machine's is. */
  async #resolver(pod: unknown): Promise<readonly string[]> {
    const { dns, folder } = this.#parts;
    if (dns === undefined || valueAt(pod, "spec", "hostNetwork") === true) return [];
    const file = join(folder, "resolv.conf");
    await writeFile(file, `nameserver ${dns}\n`);
    return ["unshare", "--mount", "sh", "-c", WITH_RESOLVER, "sh", file];
  }

  #end(running: RunningPod, pod: unknown): void {
    if (running.ending) return;
    running.ending = true;
    for (const { daemon } of running.containers) terminate(daemon.pid);
    const ended = Promise.all(running.containers.map(({ daemon }) => daemon.ended));
    const gone = ended.then(() => this.#parts.api.delete(`${this.#path}/${nameOf(pod)}`));
    gone.catch(() => {
      running.ending = false;
    });
  }

  /** @returns whether the API server has taken it: it may be away, or the pod deleted */
  async #setStatus(pod: unknown, { place }: RunningPod, ready: boolean): Promise<boolean> {
    const node = this.#parts.nodes.find(({ name }) => name === valueAt(pod, "spec", "nodeName"));
    const status = podStatus(place.addresses, node?.addresses ?? {}, ready);
    return this.#parts.api.patch(`${this.#path}/${nameOf(pod)}/status`, status).then(
      () => true,
      async (error: unknown) => {
        await this.#note(error);
        return false;
      },
    );
  }
}

/** One that has ended already is as good. */
function terminate(pid: number): void {
  try {
    process.kill(pid, "SIGTERM");
  } catch (error) {
    if (errorCode(error) !== "ESRCH") throw error;
  }
}

function nameOf(pod: unknown): string {
  return stringOf(valueAt(pod, "metadata", "name")) ?? "";
}

/** Whether every probed port is open, as the kernel lists the sockets of the process's namespace. */
async function isReady({ containers }: RunningPod): Promise<boolean> {
  for (const { daemon, port } of containers) {
    if (port === undefined) continue;
    const listed = await Promise.all(["tcp", "tcp6"].map((table) => sockets(daemon.pid, table)));
    const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    if (
      !listed
        .join("\n")
        .split("\n")
        .some((line) => isListening(line, local))
    )
      return false;
  }
  return true;
}

function sockets(pid: number, table: string): Promise<string> {
  return readFile(`/proc/${pid}/net/${table}`, "utf8").catch(() => "");
}

/** `0: 00000000:1F90 00000000:0000 0A …`: 0A is TCP_LISTEN. */
function isListening(line: string, local: string): boolean {
  const [, address = "", , state] = line.trim().split(/\s+/);
  return address.endsWith(local) && state === "0A";
}
