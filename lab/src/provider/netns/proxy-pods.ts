/** Pods of proxies' DaemonSets as processes on nodes. */

import { appendFile, mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { errorChainText, fieldsOf, itemsOf, stringOf, valueAt } from "@fairlead/base";
import { type AgentProcess, startAgent } from "../../agent.ts";
import type { ControlPlane } from "../../control-plane/control-plane.ts";
import { orDispose } from "../../support/processes.ts";
import type { ProxyPodsHandle } from "../cluster.ts";
import { httpStatus } from "../pod-handle.ts";
import type { GroundNode } from "./ground.ts";
import { podStatus } from "./pods.ts";

interface ProxyPodsParts {
  readonly nodes: readonly GroundNode[];
  readonly controlPlane: ControlPlane;
  readonly folder: string;
  /** Its program; pods of other containers are the built agent's. */
  readonly kubeProxy: string;
}

/** The second one ends a deletion in which an object waits for its pods. */
const CONTROLLERS = ["daemonset-controller", "garbage-collector-controller"];

/** Starts the controllers of DaemonSets, and a stand-in for the scheduler and the kubelets, for kube-system only. */
export function startProxyPods(parts: ProxyPodsParts): Promise<ProxyPodsHandle> {
  return orDispose(async (opened) => {
    const podsFolder = join(parts.folder, "pods");
    await mkdir(podsFolder, { recursive: true });
    const controllers = await parts.controlPlane.startControllers(...CONTROLLERS);
    opened.defer(() => controllers.stop("SIGKILL"));
    const pods = new ProxyPods(parts, podsFolder);
    const stop = new AbortController();
    const following = pods.follow(stop.signal);
    opened.defer(async () => {
      stop.abort();
      await following;
      await pods.dispose();
    });
    const kept = opened.move();
    return { podsFolder, dispose: () => kept.disposeAsync() };
  });
}

const PATH = "/api/v1/namespaces/kube-system/pods";

const PAUSE_MS = 100;

class ProxyPods {
  readonly #parts: ProxyPodsParts;
  readonly #podsFolder: string;
  readonly #running = new Map<string, ProxyPod>();

  constructor(parts: ProxyPodsParts, podsFolder: string) {
    this.#parts = parts;
    this.#podsFolder = podsFolder;
  }

  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#reconcile().catch((error: unknown) => this.#note(error));
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.#running.values()].map((pod) => pod.kill()));
  }

  /** For the artifacts of a failed run. */
  async #note(error: unknown): Promise<void> {
    const line = `${new Date().toISOString()} ${errorChainText(error)}\n`;
    await appendFile(join(this.#parts.folder, "proxy-pods.log"), line);
  }

  async #reconcile(): Promise<void> {
    const { api } = this.#parts.controlPlane;
    const pods = itemsOf(fieldsOf(await api.get(PATH))["items"]);
    const there = new Set<string>();
    for (const pod of pods) {
      const uid = stringOf(valueAt(pod, "metadata", "uid")) ?? "";
      there.add(uid);
      const running = this.#running.get(uid);
      const isLeaving = valueAt(pod, "metadata", "deletionTimestamp") !== undefined;
      if (running !== undefined) await (isLeaving ? running.end() : running.look());
      else if (isLeaving) await api.delete(`${PATH}/${nameOf(pod)}`);
      else await this.#begin(uid, pod);
    }
    for (const [uid, pod] of this.#running) {
      if (there.has(uid)) continue;
      this.#running.delete(uid);
      await pod.kill();
    }
  }

  async #begin(uid: string, pod: unknown): Promise<void> {
    const { nodes, controlPlane, folder, kubeProxy } = this.#parts;
    const nodeName = stringOf(valueAt(pod, "spec", "nodeName"));
    if (nodeName === undefined) return this.#bind(pod);
    const node = nodes.find(({ name }) => name === nodeName);
    if (node === undefined) return;
    const folders = { own: join(folder, uid), ofNode: join(folder, nodeName), pods: this.#podsFolder };
    const path = `${PATH}/${nameOf(pod)}`;
    const started = new ProxyPod({ node, controlPlane, folders, kubeProxy, pod, path });
    this.#running.set(uid, started);
    started.start().catch((error: unknown) => this.#note(error));
  }

  /** The DaemonSet controller says in each pod which node it is for; a scheduler only obeys. */
  async #bind(pod: unknown): Promise<void> {
    const required = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    const [term] = itemsOf(valueAt(pod, ...required, "nodeSelectorTerms"));
    const [field] = itemsOf(fieldsOf(term)["matchFields"]).map(fieldsOf);
    const [name] = itemsOf(field?.["values"]);
    const target = { apiVersion: "v1", kind: "Node", name };
    const metadata = { name: nameOf(pod) };
    const path = `${PATH}/${nameOf(pod)}/binding`;
    await this.#parts.controlPlane.api.post(path, { apiVersion: "v1", kind: "Binding", metadata, target });
  }
}

function nameOf(pod: unknown): string {
  return stringOf(valueAt(pod, "metadata", "name")) ?? "";
}

interface ProxyPodParts {
  readonly node: GroundNode;
  readonly controlPlane: ControlPlane;
  readonly folders: { readonly own: string; readonly ofNode: string; readonly pods: string };
  readonly kubeProxy: string;
  /** As the API server has it. */
  readonly pod: unknown;
  readonly path: string;
}

/** One pod of the node's network: its containers are processes. */
class ProxyPod {
  readonly #parts: ProxyPodParts;
  #process: AgentProcess | undefined;
  #restarts = 0;
  #ready: boolean | undefined;
  #started = false;
  #ending: Promise<void> | undefined;

  constructor(parts: ProxyPodParts) {
    this.#parts = parts;
  }

  /** Init containers, then the container; one that ends is started again. */
  async start(): Promise<void> {
    const { pod, folders, controlPlane, node } = this.#parts;
    const paths = await podFiles(controlPlane, pod, folders);
    for (const container of itemsOf(valueAt(pod, "spec", "initContainers"))) {
      const { exitCode, log } = await this.#run(container, paths).ended;
      if (exitCode !== 0) throw new Error(`${this.#parts.path}: its init container ended with ${exitCode}:\n${log}`);
    }
    await mkdir(folders.pods, { recursive: true });
    await writeFile(this.#sign, String(node.namespace.pid));
    this.#started = true;
    const [container] = itemsOf(valueAt(pod, "spec", "containers"));
    if (fieldsOf(container)["name"] === CHECK) return;
    while (this.#ending === undefined) {
      this.#process = this.#run(container, paths);
      await this.#process.ended;
      this.#restarts += 1;
    }
  }

  /** Says whether it is ready, when that has changed. */
  async look(): Promise<void> {
    const ready = this.#started && (await this.#isReady());
    if (ready === this.#ready) return;
    this.#ready = ready;
    const { node, pod, path, controlPlane } = this.#parts;
    const [container] = itemsOf(valueAt(pod, "spec", "containers")).map(fieldsOf);
    const { name, image } = container ?? {};
    const state = { running: { startedAt: new Date().toISOString() } };
    const status = { name, image, imageID: "", ready, restartCount: this.#restarts, state };
    const { status: common } = podStatus(node.addresses, node.addresses, ready) as { readonly status: object };
    await controlPlane.api.patch(`${path}/status`, { status: { ...common, containerStatuses: [status] } });
  }

  /** As a kubelet does when its object is to be deleted: SIGTERM, and the object goes with the process. */
  end(): void {
    this.#ending ??= this.#end();
  }

  async #end(): Promise<void> {
    await this.#process?.stop();
    await rm(this.#sign, { force: true });
    await this.#parts.controlPlane.api.delete(this.#parts.path);
  }

  async kill(): Promise<void> {
    this.#ending ??= Promise.resolve();
    await this.#process?.kill();
    await rm(this.#sign, { force: true });
  }

  get #sign(): string {
    return join(this.#parts.folders.pods, basename(this.#parts.path));
  }

  #run(container: unknown, paths: Parameters<typeof moved>[1]): AgentProcess {
    const { node, kubeProxy } = this.#parts;
    const { name, command, args } = fieldsOf(container);
    const [, ...given] = itemsOf(command).map(String);
    const flags = [...given, ...itemsOf(args).map(String)]
      .map((flag) => flag.replaceAll("$(NODE_NAME)", node.name))
      .map((flag) => moved(flag, paths));
    return startAgent(node.namespace, { flags, ...(name === KUBE_PROXY && { program: kubeProxy }) });
  }

  /** By its readiness probe, if it has one. */
  async #isReady(): Promise<boolean> {
    const [container] = itemsOf(valueAt(this.#parts.pod, "spec", "containers")).map(fieldsOf);
    if (container?.["readinessProbe"] === undefined) return true;
    return (await httpStatus(this.#parts.node.runner, "127.0.0.1", HEALTH_PORT, "/healthz")) === 200;
  }
}

const HEALTH_PORT = 10_256;
const KUBE_PROXY = "kube-proxy";
/** A pod in which programs are started, and nothing runs. */
const CHECK = "check";

/** What a pod sees at a path is elsewhere on this machine: nodes have no file systems of their own. */
type MovedPaths = readonly (readonly [path: string, folder: string])[];

const ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Every occurrence of the paths of a pod is the one where its files are. */
function moved(text: string, paths: MovedPaths): string {
  return paths.reduce((before, [path, folder]) => before.replaceAll(path, folder), text);
}

/**
 * Writes what a pod's volumes hold, as its kubelet would: ConfigMaps, and its account's token. Folders of the host that
 * it writes to are the node's own.
 *
 * @returns where its paths are
 */
async function podFiles(
  { api, ca }: Pick<ControlPlane, "api" | "ca">,
  pod: unknown,
  { own, ofNode }: { readonly own: string; readonly ofNode: string },
): Promise<MovedPaths> {
  const namespace = stringOf(valueAt(pod, "metadata", "namespace"));
  const account = stringOf(valueAt(pod, "spec", "serviceAccountName"));
  const paths: (readonly [string, string])[] = [];
  if (account !== undefined) {
    const folder = join(own, "account");
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
    const spec = { expirationSeconds: 7_200 };
    const made = await api.post(path, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec });
    await writeAll(folder, { token: stringOf(valueAt(made, "status", "token")) ?? "", "ca.crt": ca });
    paths.push([ACCOUNT_FOLDER, folder]);
  }
  const volumes = new Map(
    itemsOf(valueAt(pod, "spec", "volumes")).map((one) => [fieldsOf(one)["name"], fieldsOf(one)]),
  );
  const containers = itemsOf(valueAt(pod, "spec", "containers"));
  for (const mount of containers.flatMap((one) => itemsOf(fieldsOf(one)["volumeMounts"])).map(fieldsOf)) {
    const volume = volumes.get(mount["name"]);
    const path = stringOf(mount["mountPath"]) ?? "";
    const name = stringOf(valueAt(volume, "configMap", "name"));
    const isWritten = mount["readOnly"] !== true && valueAt(volume, "hostPath", "type") === "DirectoryOrCreate";
    if (name !== undefined) {
      const map = await api.get(`/api/v1/namespaces/${namespace}/configmaps/${name}`);
      const folder = join(own, String(mount["name"]));
      await mkdir(folder, { recursive: true });
      paths.push([path, folder]);
      const data = Object.entries(fieldsOf(valueAt(map, "data")));
      await writeAll(folder, Object.fromEntries(data.map(([file, text]) => [file, moved(String(text), paths)])));
    } else if (isWritten) {
      const folder = join(ofNode, path);
      await mkdir(folder, { recursive: true });
      paths.push([path, folder]);
    }
  }
  return paths;
}

async function writeAll(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
}
