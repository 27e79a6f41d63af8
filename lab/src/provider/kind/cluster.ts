/** A cluster of kind as specs see it. */

import { mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { createRunner } from "@fairlead/kernel";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { BROWSER } from "@fairlead/tooling/browser-program";
import { type CniFlavor, loadFlavor } from "../../cni/flavor.ts";
import { type ApiClient, objectPath } from "../../control-plane/api-client.ts";
import { kubernetesVersion, missingControlPlane, missingPrograms } from "../../control-plane/programs.ts";
import { startPeer } from "../../peer/process.ts";
import { isThere, type Lack, lackingPrograms, lackOf, missingHere, type NeededProgram } from "../../support/machine.ts";
import { orDispose } from "../../support/processes.ts";
import { waitUntil } from "../../support/wait-until.ts";
import {
  type Cluster,
  type ClusterNode,
  type ClusterShape,
  NODE_PORTS,
  POD_PORTS,
  type WantedPod,
} from "../cluster.ts";
import { clusterState, programsOf } from "../netns/cluster.ts";
import { familiesOnly, gateAddress, gateCounter, OUTSIDE_ADDRESS, STRANGER_ADDRESS } from "../netns/ground.ts";
import { GRACE_SECONDS, podHandle, podObject, podStarter, scriptStarter } from "../pod-handle.ts";
import { type ClusterRequest, followServices, type Progress, type Provider, shapeOf } from "../provider.ts";
import { PAUSE_IMAGE } from "./component-images.ts";
import {
  agentOn,
  buildFairleadImage,
  installFairlead,
  installInstance,
  overlayNames,
  SharedStart,
} from "./fairlead.ts";
import {
  createKindCluster,
  type KindCluster,
  type KindNode,
  type NewCluster,
  openApi,
  openOutside,
  PATIENCE_MS,
} from "./kind-cluster.ts";
import { addGateways, addMetalLB } from "./load-balancer.ts";
import { cluster, containerNetwork, type Machine, openMachine, published as publishedSet } from "./machine.ts";
import { addKubeProxy, giveProxies } from "./mixed.ts";
import { installers, installNetworks, misplacedNetwork, NODE_FOLDER } from "./networks/install.ts";
import type { Source } from "./networks/network.ts";
import { provideImages } from "./node-image.ts";
import { published } from "./published.ts";

interface ClusterParts {
  readonly source: Source;
  readonly shape: ClusterShape;
  readonly flavors: readonly CniFlavor[];
  readonly request: ClusterRequest;
  /** Of the run. */
  readonly id: string;
  readonly folder: string;
  readonly progress: Progress;
}

/** Builds everything; what was opened is closed again when something fails. */
function openCluster(parts: ClusterParts): Promise<Cluster> {
  return orDispose((opened) => build(parts, opened));
}

async function build(parts: ClusterParts, opened: AsyncDisposableStack): Promise<Cluster> {
  const { shape, request, folder } = parts;
  const { families } = shape;
  const { images, machine, kind, workers, outside, networks, reached, start } = await openWithFairlead(parts, opened);
  const { api, url, token, ca, kubeconfig } = reached;
  const [nodes, sender] = await Promise.all([
    Promise.all(workers.map((node, index) => openNode(kind, node, index, { shape, start }, opened))),
    peerIn(outside, "outside", opened),
  ]);
  const pods = numberedPods({ api, families, inNetwork: networks.podSpec });
  opened.defer(pods.dispose);
  const index = ({ name }: ClusterNode) => workers.findIndex((worker) => worker.name === name) + 1;
  const gates = gateCounter();
  const { programs } = images;
  const { progress } = parts;
  const added = { cluster: kind, families, kubernetes: request.kubernetes, kubectl: programs.kubectl, progress };
  return {
    ...shape,
    nodes,
    api,
    outside: {
      name: "outside",
      addresses: familiesOnly(families, OUTSIDE_ADDRESS),
      send: (probe) => sender.send(probe),
    },
    strangerAddresses: familiesOnly(families, STRANGER_ADDRESS),
    apiServer: {
      url,
      token,
      ca,
      run: (argv, options) => machine.runner.run(argv, options),
      namespace: machine.network.namespace,
      ...notOurs,
    },
    kubernetes: {
      version: kubernetesVersion(request.kubernetes),
      kubeconfig,
      kubectl: kind.kubectl,
      kubectlProgram: images.programs.kubectl,
      addFairlead: () => start.apply({}),
      addInstance: () => installInstance(kind, shape, images.programs.kubectl, url),
      addKubeProxy: () => addKubeProxy(kind, shape.mode),
      addLoadBalancer: once(() => addMetalLB(added)),
      addGateways: once(() => addGateways(added)),
      giveProxies: (proxies) =>
        giveProxies({ cluster: kind, shape, kubectl: images.programs.kubectl, apiServer: url }, proxies),
    },
    startPod: pods.start,
    gateAddress: (node, family) => gateAddress[family](index(node), gates()),
    tour: tourOf(machine, kind, kubeconfig),
    state: () => clusterState({ nodes: pairs(workers, nodes), networks: networks.running, folder }),
    dispose: () => opened.disposeAsync(),
  };
}

/** What failed is tried again by the next that asks for it. */
function once(act: () => Promise<void>): () => Promise<void> {
  const done: Promise<void>[] = [];
  return async () => {
    if (done.length === 0) done.push(act());
    await done[0]?.catch((error: unknown) => {
      done.length = 0;
      throw error;
    });
  };
}

/** A cluster with its pod networks, and Fairlead serving on every node. */
async function openWithFairlead(parts: ClusterParts, opened: AsyncDisposableStack) {
  const { shape, flavors, request, folder, progress } = parts;
  const { families } = shape;
  const [images, archive] = await Promise.all([
    parts.source.images(request.kubernetes, progress),
    buildFairleadImage(folder, progress),
  ]);
  const machine = await openMachine(parts.id, folder);
  opened.defer(() => machine.dispose());
  progress("Docker runs, in a network of its own");
  const shared = join(folder, "networks");
  await mkdir(shared);
  const kind = await createKindCluster(machine, images, wantedCluster(parts, shared), folder);
  progress(`kind has made ${kind.nodes.map(({ name }) => name).join(", ")}`);
  const workers = kind.nodes.filter((node) => node !== kind.controlPlane);
  const outside = await openOutside(machine, { all: kind.nodes, workers }, families, opened);
  const reached = await openApi(machine, kind, folder, opened);
  for (const one of images.archives) await kind.loadImage(one);
  const { api } = reached;
  const { installers } = parts.source;
  const ground = { installers, cluster: kind, machine, api, flavors, families, request, folder: shared, progress };
  const networks = await installNetworks(ground, opened);
  progress("the pod networks are set up");
  await kind.loadImage(archive);
  const how = { overlay: request.overlay ?? shape.mode, apiServer: reached.url };
  const start = new SharedStart((one) => installFairlead(kind, shape, images.programs.kubectl, { ...how, start: one }));
  await start.apply({});
  await followServices(shape, networks.running, reached.kubeconfig);
  progress("Fairlead serves on every node");
  return { images, machine, kind, workers, outside, networks, reached, start };
}

const notOurs = {
  stop: () => Promise.reject(new Error("the API server of kind is the kubelet's to stop")),
  start: () => Promise.reject(new Error("the API server of kind is the kubelet's to start")),
};

function wantedCluster({ shape, flavors, request }: ClusterParts, shared: string): NewCluster {
  const podCIDRs = shape.families.map((family) => flavors[0]?.podCIDRs[family] ?? "");
  const mounts = [{ hostPath: shared, containerPath: NODE_FOLDER }];
  return { families: shape.families, workers: request.nodes, podCIDRs, mounts };
}

async function openNode(
  kind: KindCluster,
  node: KindNode,
  index: number,
  { shape, start }: { readonly shape: ClusterShape; readonly start: SharedStart },
  opened: AsyncDisposableStack,
): Promise<ClusterNode> {
  const { name, addresses, namespace, runner } = node;
  const [peer, agent] = await Promise.all([peerIn(namespace, name, opened), agentOn(kind, node, shape, start)]);
  const zone = `zone-${index + 1}`;
  return { name, zone, addresses, agent, send: (probe) => peer.send(probe), run: (argv) => runner.run(argv) };
}

async function peerIn(namespace: NetworkNamespace, name: string, opened: AsyncDisposableStack) {
  const peer = await startPeer(namespace, { name, listen: NODE_PORTS });
  opened.defer(() => peer.stop());
  return peer;
}

function tourOf({ argvPrefix }: Machine, { nodes }: KindCluster, kubeconfig: string): readonly string[] {
  const inside = argvPrefix.join(" ");
  const shells = nodes.map((node) => `${node.name}: ${node.namespace.argvPrefix.join(" ")} bash`);
  return [`the machine: ${inside} bash; there KUBECONFIG=${kubeconfig}`, ...shells];
}

function pairs(workers: readonly KindNode[], nodes: readonly ClusterNode[]) {
  return nodes.flatMap((node) =>
    workers.filter(({ name }) => name === node.name).map((worker) => [worker, node] as const),
  );
}

/** Says that a pod is ready, alongside the kubelet. */
const GATE = "fairlead.dev/ready";
const PAUSE_MS = 100;

/** What pods are made of. */
interface PodGround {
  readonly api: ApiClient;
  readonly families: readonly IPFamily[];
  /** What a pod's object needs to come into a network. */
  inNetwork(network: string, pod: string): Readonly<Record<string, unknown>>;
}

/** Starts pods, and numbers them. */
function numberedPods(ground: PodGround) {
  let count = 0;
  return podStarter((wanted, undo) => {
    count += 1;
    return openPod(ground, `${wanted.network}-${count}`, wanted, undo);
  });
}

/**
 * A pod whose container does nothing: what serves and sends in its network is a process of this machine. The kubelet
 * starts it, the network's plugin connects it, and a readiness gate of our own says whether it is ready.
 */
async function openPod(ground: PodGround, name: string, wanted: WantedPod, undo: AsyncDisposableStack) {
  const { api, families } = ground;
  await serviceAccountIn(api, wanted.namespace);
  const created = await api.create(podObject(name, wanted, { ...IDLE, ...ground.inNetwork(wanted.network, name) }));
  const path = objectPath({ apiVersion: "v1", kind: "Pod", metadata: created.metadata });
  undo.defer(() => api.delete(path));
  const addresses = await addressesOf(api, path, families);
  const { namespace } = await containerNetwork(`pod${String(created.metadata["uid"])}`);
  const peer = await startPeer(namespace, { name, listen: POD_PORTS });
  undo.defer(() => peer.stop());
  const setReady = (ready: boolean) => {
    const conditions = [{ type: GATE, status: ready ? "True" : "False" }];
    return api.patch(`${path}/status`, { status: { conditions } }, "strategic");
  };
  await setReady(wanted.ready ?? true);
  return {
    ...podHandle({ name, wanted, addresses, api, path, peer, setReady }),
    startScript: scriptStarter(namespace, undo),
  };
}

/** A container that does nothing, and goes on serving while it is terminating. */
const IDLE = {
  automountServiceAccountToken: false,
  tolerations: [{ operator: "Exists" }],
  terminationGracePeriodSeconds: GRACE_SECONDS + 30,
  readinessGates: [{ conditionType: GATE }],
  containers: [{ name: "peer", image: PAUSE_IMAGE, lifecycle: { preStop: { sleep: { seconds: GRACE_SECONDS } } } }],
};

/** Pods are refused until a controller has made their namespace's account. */
export async function serviceAccountIn(api: Pick<ApiClient, "get">, namespace: string): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  const isThere = () => api.get(path).then(Boolean, () => undefined);
  await waitUntil(path, PATIENCE_MS, isThere, PAUSE_MS);
}

async function addressesOf(api: ApiClient, path: string, families: readonly IPFamily[]) {
  const started = async () => {
    const { status } = (await api.get(path)) as PodStatus;
    const running = status?.phase === "Running" && status.podIPs?.length === families.length;
    return running ? status.podIPs?.map(({ ip }) => ip) : undefined;
  };
  const ips = await waitUntil(`the start of ${path}`, PATIENCE_MS, started, PAUSE_MS);
  return Object.fromEntries(families.map((family) => [family, ips.find((ip) => familyOf(ip) === family)]));
}

interface PodStatus {
  readonly status?: { readonly phase?: string; readonly podIPs?: readonly { readonly ip: string }[] };
}

const DOCKER: readonly NeededProgram[] = [
  { by: "kind", program: "dockerd", debian: "docker.io" },
  { by: "kind", program: "docker", debian: "docker.io" },
  { by: "kind", program: "runc", debian: "runc" },
];

/** Kubernetes in Docker, all of it made on this machine: nodes with systemd, containerd and kubelets, and images. */
export const kind: Provider = provider("kind", {
  source: { installers, images: (kubernetes, progress) => provideImages(createRunner(), kubernetes, progress) },
  programs: [...DOCKER, ...["jq", "mmdebstrap", "gcc"].map((program) => ({ by: "kind", program, debian: program }))],
  lacks: async ({ cni, kubernetes }) => {
    const ofFlavors = lackingPrograms(programsOf(await Promise.all(cni.map(loadFlavor))));
    const built = [missingControlPlane(kubernetes), missingPrograms(cluster, kubernetes)].map(lackOf);
    return (await Promise.all([...built, ofFlavors])).flat();
  },
});

/** Kubernetes in Docker out of published images and manifests; all else is the same. */
export const kindPublished: Provider = provider("kind-published", {
  source: published,
  programs: DOCKER,
  lacks: ({ kubernetes }) => lackOf(missingPrograms(publishedSet, kubernetes)),
});

interface KindOf {
  readonly source: Source;
  readonly programs: readonly NeededProgram[];
  /** What only this source needs. */
  readonly lacks: (request: ClusterRequest) => Promise<readonly Lack[]>;
}

function provider(name: string, { source, programs, lacks }: KindOf): Provider {
  return {
    name,
    flavors: async () => Object.keys(source.installers),
    overlays: overlayNames,
    lacks: async (request) => {
      if (process.getuid?.() !== 0) return [{ what: "kind here takes root: it runs a Docker daemon of its own" }];
      const { mode } = request;
      const overlay = (await overlayNames()).includes(mode)
        ? undefined
        : `deploy/overlays has nothing for ${mode} mode`;
      const misfits = [overlay, misplacedNetwork(request)].flatMap((what) => (what === undefined ? [] : [{ what }]));
      return [
        ...(await lackingPrograms(programs)),
        ...(await lackOf(missingHere())),
        ...(await lacks(request)),
        ...misfits,
      ];
    },
    shape,
    open: async (request, folder, progress) =>
      openCluster({
        source,
        shape: await shape(request),
        flavors: await Promise.all(request.cni.map(loadFlavor)),
        request,
        id: basename(dirname(folder)),
        folder,
        progress,
      }),
  };
}

async function shape(request: ClusterRequest) {
  const nodeNames = Array.from({ length: request.nodes }, (_, at) => `fairlead-worker${at === 0 ? "" : at + 1}`);
  const browser = (await isThere(BROWSER)) ? (["browser"] as const) : [];
  return { ...(await shapeOf("kind", request, nodeNames)), abilities: ["learn", "pod-script", ...browser] as const };
}
