import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fieldsOf, itemsOf, valueAt } from "@fairlead/base";
import { type AgentProcess, startAgent } from "../../../agent/agent-process.ts";
import type { ControlPlane } from "../../../control-plane/control-plane.ts";
import { httpStatus } from "../../node-http.ts";
import type { GroundNode } from "../ground.ts";
import { podStatus } from "../pod-object.ts";
import { moved, podFiles } from "./pod-files.ts";

export interface ProxyPodParts {
  readonly node: GroundNode;
  readonly controlPlane: ControlPlane;
  readonly folders: { readonly own: string; readonly ofNode: string; readonly pods: string };
  readonly kubeProxy: string;
  /** As the API server has it. */
  readonly pod: unknown;
  readonly path: string;
}

/** One pod of the node's network: its containers are processes. */
export class ProxyPod {
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
