import { join } from "node:path";
import type { CniFlavor } from "../../cni/flavor.ts";
import { objectPath } from "../../control-plane/api-client.ts";
import type { ControlPlane } from "../../control-plane/control-plane.ts";
import { startPeer } from "../../peer/process.ts";
import { orDispose } from "../../support/or-dispose.ts";
import { startScript } from "../../support/script.ts";
import { openSecondUplink } from "../../uplink/second-uplink.ts";
import { runnerIn } from "../../wire/apply.ts";
import { type Cluster, type ClusterShape, NODE_PORTS } from "../cluster.ts";
import { followServices } from "../install-flavor.ts";
import type { ClusterNode } from "../node.ts";
import { requireMode } from "../node-http.ts";
import type { Progress } from "../provider.ts";
import {
  FABRIC_ADDRESS,
  familiesOnly,
  gateAddress,
  gateCounter,
  OUTSIDE_ADDRESS,
  STRANGER_ADDRESS,
} from "./addresses.ts";
import { startNodeAgent, startNodeInstance } from "./agent.ts";
import { gatesBefore } from "./gates.ts";
import { type Ground, type GroundNode, openGround } from "./ground.ts";
import { startKubelet } from "./kubelet.ts";
import { installNetworks } from "./networks.ts";
import { nodeObject, nodeStatus } from "./pod-object.ts";
import { numberedPods } from "./pods.ts";
import { proxyFlags } from "./proxy-flags.ts";
import { startProxyPods } from "./proxy-pods/start.ts";
import { stateFolder } from "./start-how.ts";
import { clusterState } from "./state.ts";

export interface ClusterParts {
  readonly shape: ClusterShape;
  readonly flavors: readonly CniFlavor[];
  readonly folder: string;
  readonly progress: Progress;
  readonly controlPlane: ReachControlPlane;
}

/**
 * Starts the control plane, or finds the way to one.
 *
 * @param opened gets what has to be closed
 */
export type ReachControlPlane = (ground: Ground, opened: AsyncDisposableStack) => Promise<ControlPlane>;

/** Builds everything; what was opened is closed again when something fails. */
export function openCluster(parts: ClusterParts): Promise<Cluster> {
  return orDispose((opened) => build(parts, opened));
}

async function build(parts: ClusterParts, opened: AsyncDisposableStack): Promise<Cluster> {
  const { shape, flavors, folder, progress } = parts;
  const ground = await openGround(shape.families, shape.nodeNames.length, opened);
  const [controlPlane, networks, outside] = await Promise.all([
    parts.controlPlane(ground, opened),
    installNetworks(flavors, ground, folder, opened),
    peerIn(ground.outside, "outside", opened),
  ]);
  await followServices(shape, networks, controlPlane.adminKubeconfig);
  progress("the control plane answers, the pod networks are up");
  const { certificate } = controlPlane;
  const [family = "IPv4"] = shape.families;
  const nodes = await Promise.all(ground.nodes.map((node) => openNode(node, parts, controlPlane, opened)));
  progress("Fairlead runs on every node");
  const pairs = ground.nodes.map((node, index) => [node, known(nodes[index])] as const);
  const groundNode = (node: ClusterNode) => known(ground.nodes.find(({ name }) => name === node.name));
  const pods = numberedPods({ ground, api: controlPlane.api, networks, folder, groundNode });
  opened.defer(pods.dispose);
  const gates = gateCounter();
  return {
    ...shape,
    nodes,
    api: controlPlane.api,
    outside: {
      name: "outside",
      addresses: familiesOnly(shape.families, OUTSIDE_ADDRESS),
      send: (probe) => outside.send(probe),
      run: (argv, options) => runnerIn(ground.outside).run(argv, options),
      namespace: ground.outside,
    },
    strangerAddresses: familiesOnly(shape.families, STRANGER_ADDRESS),
    apiServer: {
      url: controlPlane.url,
      token: controlPlane.token,
      run: (argv, options) => runnerIn(ground.fabric).run(argv, options),
      stop: controlPlane.stopApiServer,
      start: controlPlane.startApiServer,
      namespace: ground.fabric,
      startScript: (file, args) => startScript(ground.fabric, file, args),
      ...(certificate !== undefined &&
        gatesBefore({ namespace: ground.fabric, family, host: FABRIC_ADDRESS[family], certificate, nodes })),
    },
    startPod: pods.start,
    ...(certificate !== undefined && {
      runPodsOf: (namespace, dns) => {
        const [network] = networks.keys();
        const place = (node: GroundNode, undo: AsyncDisposableStack) => pods.attach(node, known(network), undo);
        const kubelet = {
          nodes: ground.nodes,
          api: controlPlane.api,
          certificate,
          place,
          ...(dns !== undefined && { dns }),
        };
        return startKubelet({ ...kubelet, folder: join(folder, `pods-${namespace}`) }, namespace);
      },
      runProxyPods: (kubeProxy) =>
        startProxyPods({ nodes: ground.nodes, controlPlane, folder: join(folder, "proxy-pods"), kubeProxy }),
    }),
    gateAddress: (node, family) => gateAddress[family](groundNode(node).index, gates()),
    tour: ground.nodes.map(({ name, namespace }) => `${name}: ${namespace.argvPrefix.join(" ")} bash`),
    state: () => clusterState({ nodes: pairs, networks, folder }),
    dispose: () => opened.disposeAsync(),
  };
}

async function openNode(
  node: GroundNode,
  { shape, folder }: ClusterParts,
  { api, proxyKubeconfig }: ControlPlane,
  opened: AsyncDisposableStack,
): Promise<ClusterNode> {
  const { name, index, addresses, namespace, runner } = node;
  const zone = `z${index}`;
  const address = addresses[shape.families[0] ?? "IPv4"];
  const object = nodeObject(name, zone);
  await api.create(object);
  await api.patch(`${objectPath(object)}/status`, nodeStatus(name, addresses));
  const own = join(folder, name);
  const settings = (memory?: string) => {
    return { nodeName: name, kubeconfig: proxyKubeconfig, stateFolder: stateFolder(own, memory) };
  };
  const starting = startNodeAgent(
    node,
    { mode: shape.mode },
    (proxy, how) => proxyFlags(shape, settings(how.memory), proxy, how),
    own,
  );
  const [peer, agent] = await Promise.all([peerIn(namespace, name, opened), starting]);
  opened.defer(() => agent.dispose());
  await requireMode(agent, shape.mode);
  const startInstance = async (name: string, mode: string, ...flags: readonly string[]) => {
    const own = proxyFlags(shape, settings(), { mode });
    const instance = await startNodeInstance(node, [...own, `--service-proxy-name=${name}`, ...flags]);
    opened.defer(() => instance.dispose());
    return instance;
  };
  return {
    name,
    zone,
    addresses,
    namespacePid: namespace.pid,
    agent,
    send: (probe) => peer.send(probe),
    run: (argv) => runner.run(argv),
    startInstance: (name, ...flags) => startInstance(name, "nftables", ...flags),
    startLocalInstance: (name) => startInstance(name, "userspace", "--userspace-only", `--bind-address=${address}`),
    openSecondUplink: () => openSecondUplink(node, shape.families),
    startScript: (file, args) => startScript(namespace, file, args),
  };
}

async function peerIn(namespace: GroundNode["namespace"], name: string, opened: AsyncDisposableStack) {
  const peer = await startPeer(namespace, { name, listen: NODE_PORTS });
  opened.defer(() => peer.stop());
  return peer;
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("not of this cluster");
  return value;
}
