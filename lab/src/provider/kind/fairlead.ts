/** Fairlead on kind: its image, its manifests, and agents that are restarted with other flags. */

import { createHash } from "node:crypto";
import { glob, mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { agentVersion, buildFromPackages, ownArch } from "@fairlead/deploy/image";
import { createRunner, type Runner } from "@fairlead/kernel";
import { parse, parseAllDocuments, stringify } from "yaml";
import { cacheFolder } from "../../control-plane/programs.ts";
import { firstProcessIn, processId, signal } from "../../support/processes.ts";
import { waitUntil } from "../../support/wait-until.ts";
import type { AgentOnNode, AgentStart, ClusterShape } from "../cluster.ts";
import { networkCIDRs, SYNC_PERIOD_MS } from "../netns/agent.ts";
import { asksOf, requireMode } from "../pod-handle.ts";
import type { Progress } from "../provider.ts";
import { type KindCluster, type KindNode, PATIENCE_MS, rolledOut } from "./kind-cluster.ts";

/** As the manifests of deploy/ name it. */
export const FAIRLEAD_IMAGE = `ghcr.io/fairlead-dev/fairlead:${await agentVersion()}`;

/** Builds the image as releases do, out of packages; those are kept. @returns the archive */
export async function buildFairleadImage(folder: string, progress: Progress): Promise<string> {
  const outDir = join(folder, "image");
  await mkdir(outDir, { recursive: true });
  const keep = cacheFolder("image-layers");
  const { archive } = await buildFromPackages(createRunner(), {
    arches: [ownArch()],
    name: FAIRLEAD_IMAGE,
    outDir,
    epoch: 0,
    keep,
  });
  progress("Fairlead's image is built");
  return archive;
}

/** Brings Fairlead onto the cluster, or changes it, as its users do. Resolves when it serves so on every node. */
export async function installFairlead(
  cluster: KindCluster,
  shape: ClusterShape,
  kubectl: string,
  how: Parameters<typeof fairleadManifests>[3],
): Promise<void> {
  await apply(cluster, await fairleadManifests(createRunner(), kubectl, shape, how));
  await rolledOut(cluster, "fairlead");
}

/** Brings the agents of the overlay "instance" onto the cluster, alongside the first proxy, whatever its mode. */
export async function installInstance(
  cluster: KindCluster,
  shape: ClusterShape,
  kubectl: string,
  apiServer: string,
): Promise<void> {
  const how = { overlay: "instance", apiServer, start: {} };
  await apply(cluster, await fairleadManifests(createRunner(), kubectl, { ...shape, mode: "nftables" }, how));
  await rolledOut(cluster, "fairlead-edge");
}

export async function apply({ kubectl }: KindCluster, manifests: readonly Manifest[]): Promise<void> {
  await kubectl(["apply", "-f", "-"], { input: manifests.map((one) => JSON.stringify(one)).join("\n---\n") });
}

/** Fairlead's pod on a node. @param start of all of them: another one is a rollout of the DaemonSet */
export async function agentOn(
  cluster: KindCluster,
  node: KindNode,
  shape: ClusterShape,
  start: SharedStart,
): Promise<AgentOnNode> {
  const asks = asksOf(node.runner, node.addresses);
  await requireMode(asks, shape.mode);
  const pod = () => fairleadPod(cluster, node.name);
  const send = async (name: "SIGKILL" | "SIGSTOP" | "SIGCONT") => {
    const { container } = await pod();
    const pid = await firstProcessIn(container);
    if (pid !== undefined) await signal(await processId(pid), name);
  };
  return {
    ...asks,
    log: () => logsOf(node),
    // The kubelet starts it again, as it would anywhere.
    kill: () => send("SIGKILL"),
    restart: async (how: AgentStart = {}) => {
      if (await start.change(how)) return;
      const { name } = await pod();
      await cluster.kubectl(["-n", "kube-system", "delete", "pod", name, "--wait=true"]);
      await waitUntil(`Fairlead on ${node.name}`, PATIENCE_MS, async () => {
        const next = await pod().catch(() => undefined);
        return next?.ready === true && next.name !== name ? true : undefined;
      });
    },
    signal: send,
  };
}

const overlays = fileURLToPath(new URL("../../../../deploy/overlays/", import.meta.url));

/** What deploy/ has manifests for: modes, and more. */
export async function overlayNames(): Promise<readonly string[]> {
  return (await readdir(overlays)).sort();
}

/** The manifests of an overlay as they are. @param kubectl the program */
export async function overlayManifests(runner: Runner, kubectl: string, overlay: string): Promise<readonly Manifest[]> {
  const { stdout } = await runner.run([kubectl, "kustomize", join(overlays, overlay)]);
  return parseAllDocuments(stdout).map((document): Manifest => document.toJS());
}

/** The manifests of deploy/, with the values that each cluster has of its own, and what agents are started with. */
export async function fairleadManifests(
  runner: Runner,
  kubectl: string,
  shape: ClusterShape,
  { overlay, apiServer, start }: { readonly overlay: string; readonly apiServer: string; readonly start: AgentStart },
): Promise<readonly Manifest[]> {
  const manifests = await overlayManifests(runner, kubectl, overlay);
  const configMap = manifests.find(({ kind }) => kind === "ConfigMap");
  if (configMap === undefined) return manifests;
  const filled = withValues(configMap, shape, apiServer, start);
  const { name } = filled["metadata"] as { readonly name: string };
  return manifests.map((one) => {
    if (one === configMap) return filled;
    return one.kind === "DaemonSet" ? startedWith(one, name, start) : one;
  });
}

/**
 * A ConfigMap with the values that each cluster has of its own. Its name says what is in it, so that a change is a new
 * pod on one node after the other.
 */
export function withValues(
  manifest: Manifest,
  shape: ClusterShape,
  apiServer: string,
  { learns = false, multiCNI }: Pick<AgentStart, "learns" | "multiCNI"> = {},
): Manifest {
  const data = manifest["data"] as Readonly<Record<"config.conf" | "kubeconfig.conf", string>>;
  const [proxy = {}, fairlead = {}] = parseAllDocuments(data["config.conf"]).map((document) => document.toJS());
  const kubeconfig = parse(data["kubeconfig.conf"]);
  kubeconfig.clusters[0].cluster.server = apiServer;
  const says = (wanted: Parameters<typeof networkCIDRs>[1]) => (learns ? [] : networkCIDRs(shape, wanted));
  const config = [
    {
      ...proxy,
      clusterCIDR: says({ excluded: false }).join(","),
      // Specs wait for changes; a cluster of two nodes can take them at once.
      [shape.mode]: { ...proxy[shape.mode], minSyncPeriod: "50ms", syncPeriod: `${SYNC_PERIOD_MS}ms` },
      logging: { verbosity: 2 },
    },
    { ...fairlead, multiCNI: multiCNI ?? { excludeClusterCIDRs: says({ excluded: true }) } },
  ];
  const text = config.map((one) => stringify(one)).join("---\n");
  const files = { "config.conf": text, "kubeconfig.conf": stringify(kubeconfig) };
  const hash = createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 10);
  const { metadata } = manifest as { readonly metadata?: object };
  return { ...manifest, metadata: { ...metadata, name: `fairlead-${hash}` }, data: files };
}

/** A manifest as JSON. */
export type Manifest = Readonly<Record<string, unknown>> & { readonly kind: string };

interface Container {
  readonly name: string;
  readonly args: readonly string[];
}

interface Volume {
  readonly name: string;
  readonly configMap?: object;
}

/** What is read of a DaemonSet. */
interface DaemonSet extends Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly Container[]; readonly volumes: readonly Volume[] };
    };
  };
}

const STATE_FOLDER = "/var/lib/fairlead";

/** Fairlead's DaemonSet with another ConfigMap, and with more flags for its agents. */
export function startedWith(manifest: Manifest, configMap: string, { memory, flags = [] }: AgentStart): Manifest {
  const daemonSet = manifest as DaemonSet;
  const { template } = daemonSet.spec;
  const { containers, volumes } = template.spec;
  const own = memory === undefined ? [] : [`--state-dir=${STATE_FOLDER}/${memory}`];
  const spec = {
    ...template.spec,
    // The last of a flag's name counts.
    containers: containers.map((one) => ({ ...one, args: [...one.args, ...own, ...flags] })),
    volumes: volumes.map((one) => (one.configMap === undefined ? one : { ...one, configMap: { name: configMap } })),
  };
  return { ...daemonSet, spec: { ...daemonSet.spec, template: { ...template, spec } } };
}

/**
 * How the agents of a DaemonSet are started: all of them in the same way. A caller that wants another way changes it
 * for all, and callers that ask for the same meanwhile wait for that.
 */
export class SharedStart {
  readonly #apply: (how: AgentStart) => Promise<void>;
  #current: string | undefined;
  #change: Promise<void> = Promise.resolve();
  #changing = 0;

  /** @param apply resolves when every agent is started so */
  constructor(apply: (how: AgentStart) => Promise<void>) {
    this.#apply = apply;
  }

  /** Applies it, also where it is so already. */
  apply(how: AgentStart): Promise<void> {
    this.#current = startKey(how);
    this.#changing += 1;
    this.#change = this.#change.catch(() => {}).then(() => this.#carryOut(how));
    return this.#change;
  }

  async #carryOut(how: AgentStart): Promise<void> {
    try {
      await this.#apply(how);
    } catch (error) {
      // How far it came is unknown.
      this.#current = undefined;
      throw error;
    } finally {
      this.#changing -= 1;
    }
  }

  /** @returns false: it was so before, and nothing was done */
  async change(how: AgentStart): Promise<boolean> {
    if (this.#current !== startKey(how)) await this.apply(how);
    else if (this.#changing > 0) await this.#change;
    else return false;
    return true;
  }
}

interface FairleadPod {
  readonly name: string;
  readonly ready: boolean;
  /** Its container's id. */
  readonly container: string;
}

async function fairleadPod({ kubectl }: KindCluster, node: string): Promise<FairleadPod> {
  const selector = ["-l", "app.kubernetes.io/name=fairlead", `--field-selector=spec.nodeName=${node}`];
  const { stdout } = await kubectl(["-n", "kube-system", "get", "pods", "-o", "json", ...selector]);
  const { items }: PodList = JSON.parse(stdout);
  const [pod] = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const [status] = pod?.status.containerStatuses ?? [];
  if (pod === undefined || status?.containerID === undefined) throw new Error(`Fairlead does not run on ${node}`);
  return { name: pod.metadata.name, ready: status.ready, container: status.containerID.replace(/^.*\/\//, "") };
}

interface PodList {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
    readonly status: {
      readonly containerStatuses?: readonly { readonly ready: boolean; readonly containerID?: string }[];
    };
  }[];
}

/** As the kubelet keeps them, the earlier containers' first. */
async function logsOf({ namespace }: KindNode): Promise<string> {
  const folder = `/proc/${namespace.pid}/root/var/log/pods`;
  const files: string[] = [];
  for await (const file of glob("kube-system_fairlead-*/fairlead/*.log", { cwd: folder })) files.push(file);
  const texts = await Promise.all(files.sort().map((file) => readFile(join(folder, file), "utf8")));
  return texts.join("\n");
}

function startKey({ learns = false, multiCNI, memory = "", flags = [] }: AgentStart): string {
  return JSON.stringify([learns, multiCNI, memory, flags]);
}
