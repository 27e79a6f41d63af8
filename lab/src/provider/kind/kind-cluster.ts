/** A cluster of kind: its configuration, a way to its API server, and a client outside. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bracketed } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Argv, RunOptions, RunResult } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { type ApiClient, createApiClient } from "../../control-plane/api-client.ts";
import { kubeconfig, PORT, relayArgv } from "../../control-plane/control-plane.ts";
import { messageOf, startDaemon } from "../../support/processes.ts";
import { applyLines, applySettings, runnerIn } from "../../wire.ts";
import {
  edgeLines,
  FABRIC_ADDRESS,
  host,
  NODE_SETTINGS,
  outsideLines,
  PREFIX_LENGTH,
  rejectAtTheEnd,
  routeFromOutside,
  router,
  SERVICE_CIDRS as serviceRange,
} from "../netns/ground.ts";
import { type ContainerNetwork, containerNetwork, type Machine } from "./machine.ts";

/** A cluster as kind makes it: nodes that wait for a pod network, and a control plane that answers. */
export interface KindCluster {
  /** The control plane's first. */
  readonly nodes: readonly KindNode[];
  readonly controlPlane: KindNode;
  /** Runs kubectl as the cluster's administrator. */
  kubectl(args: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Takes an image of an OCI archive in on every node. */
  loadImage(archive: string): Promise<void>;
}

export interface KindNode extends ContainerNetwork {
  /** Of the container and of the Node. */
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
  /** Runs a program of the node's own. */
  exec(argv: Argv, options?: RunOptions): Promise<RunResult>;
}

/** A folder of this machine that every node has; nodes may write there unless it is read-only. */
interface Mount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly readOnly?: boolean;
}

interface KindSettings {
  readonly families: readonly IPFamily[];
  readonly workers: number;
  readonly podCIDRs: readonly string[];
  readonly serviceCIDRs: readonly string[];
  readonly mounts: readonly Mount[];
  /** In TOML; default none. */
  readonly containerdPatches?: readonly string[];
}

export type NewCluster = Pick<KindSettings, "families" | "workers" | "podCIDRs" | "mounts">;

/** What takes seconds takes minutes on a busy machine: only what hangs takes all of it. */
export const PATIENCE_MS = 15 * 60_000;

/** Above the patience of the program that is run, which says more. */
const MORE_MS = 30_000;

/**
 * Resolves when a DaemonSet runs on every node.
 *
 * @throws Error with its pods and their last words when it does not come to that
 */
export async function rolledOut(
  { kubectl }: Pick<KindCluster, "kubectl">,
  daemonSet: string,
  namespace = "kube-system",
) {
  const of = [`--namespace=${namespace}`, `daemonset/${daemonSet}`];
  try {
    await kubectl(["rollout", "status", ...of, `--timeout=${PATIENCE_MS / 1000}s`], {
      timeoutMs: PATIENCE_MS + MORE_MS,
    });
  } catch (error) {
    const questions = [
      ["get", "pods", `--namespace=${namespace}`, "--output=wide"],
      ["logs", ...of, "--all-pods", "--all-containers", "--prefix", "--tail=20"],
    ];
    const answers = questions.map((args) => kubectl(args).then(({ stdout }) => stdout, messageOf));
    throw new Error([messageOf(error), ...(await Promise.all(answers))].join("\n"), { cause: error });
  }
}

const NAME_FLAG = "--name=fairlead";

/** @throws Error with what kind said, and the last words of its nodes */
export async function createKindCluster(
  machine: Machine,
  images: ClusterImages,
  wanted: NewCluster,
  folder: string,
): Promise<KindCluster> {
  const { docker, kind } = toolsOf(machine, images.programs.kind);
  await rejectAtTheEnd(machine.network.runner, wanted.families);
  await docker(images.node.taken, { timeoutMs: PATIENCE_MS });
  await docker(networkArgs(wanted.families));
  const config = join(folder, "kind.json");
  const serviceCIDRs = wanted.families.map((family) => serviceRange[family]);
  const { containerdPatches = [] } = images;
  const mounts = [...wanted.mounts, ...images.mounts];
  await writeFile(config, kindConfig({ ...wanted, containerdPatches, mounts, serviceCIDRs }));
  const files = [`--config=${config}`, `--kubeconfig=${join(folder, "kind.kubeconfig")}`];
  const create = ["create", "cluster", NAME_FLAG, `--image=${images.node.name}`, "--retain", ...files];
  await kind(create, { timeoutMs: PATIENCE_MS }).catch((error) => failedCreation(error, docker));
  const { stdout } = await kind(["get", "nodes", NAME_FLAG]);
  const names = stdout.split("\n").filter(Boolean).sort();
  const nodes = await Promise.all(names.map((name) => describeNode(docker, name, wanted.families)));
  const controlPlane = nodes.find(({ name }) => name.endsWith("-control-plane"));
  if (controlPlane === undefined) throw new Error(`kind made no control plane: ${names.join(", ")}`);
  return {
    nodes: [controlPlane, ...nodes.filter((node) => node !== controlPlane)],
    controlPlane,
    kubectl: (args, options) =>
      controlPlane.exec(["kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", ...args], options),
    loadImage: async (archive) =>
      void (await kind(["load", "image-archive", NAME_FLAG, archive], { timeoutMs: PATIENCE_MS })),
  };
}

/** The configuration of `kind create cluster`; JSON is YAML. */
export function kindConfig(settings: KindSettings): string {
  const { families, workers, podCIDRs, serviceCIDRs, mounts: extraMounts } = settings;
  return JSON.stringify({
    kind: "Cluster",
    apiVersion: "kind.x-k8s.io/v1alpha4",
    networking: {
      ipFamily: families.length === 2 ? "dual" : families[0]?.toLowerCase(),
      kubeProxyMode: "none",
      disableDefaultCNI: true,
      podSubnet: podCIDRs.join(","),
      serviceSubnet: serviceCIDRs.join(","),
    },
    kubeadmConfigPatches: [kubeletPatch],
    containerdConfigPatches: settings.containerdPatches ?? [],
    nodes: [
      { role: "control-plane", extraMounts },
      ...Array.from({ length: workers }, (_, index) => ({
        role: "worker",
        // Some of Kubernetes' specs want zones.
        labels: { "topology.kubernetes.io/zone": `zone-${index + 1}` },
        extraMounts,
      })),
    ],
  });
}

/** What a cluster is started from. */
export interface ClusterImages {
  readonly programs: { readonly kind: string; readonly kubectl: string };
  /** The nodes' image, and the arguments by which Docker takes it in. */
  readonly node: { readonly name: string; readonly taken: readonly string[] };
  /** What every node is given alongside. */
  readonly mounts: readonly Mount[];
  /** For the nodes' configuration of containerd, in TOML; absent: the image has all of it. */
  readonly containerdPatches?: readonly string[];
  /** Archives of images for nodes that run already. */
  readonly archives: readonly string[];
}

/** Wires an outside to the bridge that the nodes are on, as in a cluster of namespaces. */
export async function openOutside(
  { network }: Machine,
  { all, workers }: { readonly all: readonly KindNode[]; readonly workers: readonly KindNode[] },
  families: readonly IPFamily[],
  opened: AsyncDisposableStack,
): Promise<NetworkNamespace> {
  const outside = opened.use(await createNamespace());
  await Promise.all([
    applySettings(network.runner, router),
    applySettings(runnerIn(outside), host),
    ...all.map((node) => applySettings(node.runner, { ...router, ...NODE_SETTINGS })),
  ]);
  const addresses = workers.map((node) => node.addresses);
  await applyLines(network.runner, edgeLines({ families, nodes: addresses, outsidePid: outside.pid }));
  await routeFromOutside(network.runner, families);
  await applyLines(runnerIn(outside), outsideLines(families));
  return outside;
}

interface KindApi {
  readonly api: ApiClient;
  /** The API server's own address, as agents are given it. */
  readonly url: string;
  /** May do everything. */
  readonly token: string;
  /** PEM; what the API server's certificate is signed by. */
  readonly ca: string;
  /** A file for a user with all rights who reaches the nodes' network. */
  readonly kubeconfig: string;
}

const ADMIN = "e2e-admin";

/** Reaches the API server from outside of the machine, as its administrator. */
export async function openApi(
  { network }: Machine,
  { controlPlane, kubectl }: KindCluster,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<KindApi> {
  const address = Object.values(controlPlane.addresses)[0] ?? "";
  const socketPath = join(folder, "api.sock");
  const relay = await startDaemon(network.namespace, {
    name: "relay",
    argv: relayArgv(socketPath, `${bracketed(address)}:${PORT}`),
    logFile: join(folder, "relay.log"),
  });
  opened.defer(() => relay.stop("SIGKILL"));
  await kubectl(["-n", "kube-system", "create", "serviceaccount", ADMIN]);
  const subject = `--serviceaccount=kube-system:${ADMIN}`;
  await kubectl(["create", "clusterrolebinding", ADMIN, "--clusterrole=cluster-admin", subject]);
  const created = await kubectl(["-n", "kube-system", "create", "token", ADMIN, "--duration=8h"]);
  const token = created.stdout.trim();
  const { stdout: ca } = await controlPlane.exec(["cat", "/etc/kubernetes/pki/ca.crt"]);
  const api = createApiClient({ at: { socketPath }, ca, token });
  opened.defer(async () => api.close());
  const url = `https://${bracketed(address)}:${PORT}`;
  const caFile = join(folder, "ca.crt");
  const file = join(folder, "admin.kubeconfig");
  await writeFile(caFile, ca);
  await writeFile(file, kubeconfig({ server: url, caFile, token }), { mode: 0o600 });
  return { api, url, token, ca, kubeconfig: file };
}

const NETWORK = "fairlead-e2e";
const BRIDGE = "br0";

type Tool = (args: readonly string[], options?: RunOptions) => Promise<RunResult>;

function toolsOf({ runner }: Machine, program: string): { readonly docker: Tool; readonly kind: Tool } {
  return {
    docker: (args, options) => runner.run(["docker", ...args], options),
    kind: (args, options) =>
      runner.run(["env", `KIND_EXPERIMENTAL_DOCKER_NETWORK=${NETWORK}`, program, ...args], options),
  };
}

/** kind says little about nodes that end at once. */
async function failedCreation(error: unknown, docker: Tool): Promise<never> {
  const { stdout } = await docker(["ps", "--all", "--format={{.Names}}"]);
  const names = stdout.split("\n").filter(Boolean);
  const logs = await Promise.all(
    names.map(
      async (name) =>
        `${name}:\n${await docker(["logs", "--tail=20", name]).then((reported) => reported.stdout, messageOf)}`,
    ),
  );
  throw new Error([messageOf(error), ...logs].join("\n"), { cause: error });
}

function networkArgs(families: readonly IPFamily[]): readonly string[] {
  const ranges = families.flatMap((family) => {
    const gateway = FABRIC_ADDRESS[family];
    return [
      `--subnet=${gateway.replace(/1$/, "0").replace("::0", "::")}/${PREFIX_LENGTH[family]}`,
      `--gateway=${gateway}`,
    ];
  });
  const ipv6 = families.includes("IPv6") ? ["--ipv6"] : [];
  const bridge = `com.docker.network.bridge.name=${BRIDGE}`;
  return ["network", "create", "--driver=bridge", ...ipv6, ...ranges, `--opt=${bridge}`, NETWORK];
}

async function describeNode(docker: Tool, name: string, families: readonly IPFamily[]): Promise<KindNode> {
  const { stdout } = await docker(["inspect", name]);
  const [inspected]: readonly Inspected[] = JSON.parse(stdout);
  const network = inspected?.NetworkSettings.Networks[NETWORK];
  if (inspected === undefined || network === undefined) throw new Error(`${name} is not in the network of the cluster`);
  const all = { IPv4: network.IPAddress, IPv6: network.GlobalIPv6Address };
  return {
    name,
    addresses: Object.fromEntries(families.map((family) => [family, all[family]])),
    ...(await containerNetwork(inspected.Id)),
    exec: (argv, options) => docker(["exec", ...(options?.input === undefined ? [] : ["-i"]), name, ...argv], options),
  };
}

/** What is read of `docker inspect`. */
interface Inspected {
  readonly Id: string;
  readonly NetworkSettings: {
    readonly Networks: Readonly<Record<string, { readonly IPAddress: string; readonly GlobalIPv6Address: string }>>;
  };
}

/** Control groups of version 1 are what many test machines still have. */
const kubeletPatch = JSON.stringify({
  kind: "KubeletConfiguration",
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  failCgroupV1: false,
  cgroupDriver: "cgroupfs",
});
