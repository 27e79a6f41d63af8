import { glob, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { agentVersion, buildFromPackages, ownArch } from "@fairlead/deploy/image";
import { createRunner } from "@fairlead/kernel";
import { waitUntil } from "../../agent/wait-until.ts";
import { cacheFolder } from "../../control-plane/program-set.ts";
import { firstProcessIn, processId, signal } from "../../support/processes.ts";
import type { ClusterShape } from "../cluster.ts";
import type { AgentOnNode, AgentStart } from "../node.ts";
import { asksOf, requireMode } from "../node-http.ts";
import type { Progress } from "../provider.ts";
import type { KindCluster, KindNode } from "./kind-cluster.ts";
import { fairleadManifests } from "./manifests.ts";
import type { SharedStart } from "./shared-start.ts";

/** As the manifests of deploy/ name it. */
export const FAIRLEAD_IMAGE = `ghcr.io/fairlead-dev/fairlead:${await agentVersion()}`;

const ROLLOUT = "--timeout=180s";
const START_MS = 60_000;

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
  const manifests = await fairleadManifests(createRunner(), kubectl, shape, how);
  await cluster.kubectl(["apply", "-f", "-"], { input: manifests.map((one) => JSON.stringify(one)).join("\n---\n") });
  await cluster.kubectl(["-n", "kube-system", "rollout", "status", "daemonset/fairlead", ROLLOUT], {
    timeoutMs: 200_000,
  });
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
      await waitUntil(`Fairlead on ${node.name}`, START_MS, async () => {
        const next = await pod().catch(() => undefined);
        return next?.ready === true && next.name !== name ? true : undefined;
      });
    },
    signal: send,
  };
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
