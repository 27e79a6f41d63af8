import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { errorChainText, fieldsOf, itemsOf, stringOf, valueAt } from "@fairlead/base";
import type { ControlPlane } from "../../../control-plane/control-plane.ts";
import { orDispose } from "../../../support/or-dispose.ts";
import type { ProxyPodsHandle } from "../../cluster.ts";
import type { GroundNode } from "../ground.ts";
import { ProxyPod } from "./proxy-pod.ts";

export interface ProxyPodsParts {
  readonly nodes: readonly GroundNode[];
  readonly controlPlane: ControlPlane;
  readonly folder: string;
  /** Its program; pods of other containers are the built agent's. */
  readonly kubeProxy: string;
}

const PATH = "/api/v1/namespaces/kube-system/pods";
/** The second one ends a deletion in which an object waits for its pods. */
const CONTROLLERS = ["daemonset-controller", "garbage-collector-controller"];
const PAUSE_MS = 100;

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
