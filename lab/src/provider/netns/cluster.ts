/** The cluster of namespaces: nodes with pod networks and agents, and its state for reports. */

import { access, constants, mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Argv, Runner } from "@fairlead/kernel";
import type { CniFlavor, PodNetwork } from "../../cni/flavor.ts";
import { objectPath } from "../../control-plane/api-client.ts";
import type { ControlPlane } from "../../control-plane/control-plane.ts";
import { startPeer } from "../../peer/process.ts";
import type { Lack, NeededProgram } from "../../support/machine.ts";
import { messageOf, orDispose } from "../../support/processes.ts";
import { startScript } from "../../support/script.ts";
import { runnerIn } from "../../wire.ts";
import { type Cluster, type ClusterNode, type ClusterShape, NODE_PORTS } from "../cluster.ts";
import { requireMode } from "../pod-handle.ts";
import { type ClusterRequest, daemonsHere, followServices, installFlavor, type Progress } from "../provider.ts";
import { proxyFlags, startFlags, startNodeAgent, startNodeInstance, stateFolder } from "./agent.ts";
import { gatesBefore } from "./control-plane.ts";
import {
  FABRIC_ADDRESS,
  familiesOnly,
  type Ground,
  type GroundNode,
  gateAddress,
  gateCounter,
  OUTSIDE_ADDRESS,
  openGround,
  STRANGER_ADDRESS,
} from "./ground.ts";
import { startKubelet } from "./kubelet.ts";
import { nodeObject, nodeStatus, numberedPods } from "./pods.ts";

/**
 * Starts the control plane, or finds the way to one.
 *
 * @param opened gets what has to be closed
 */
export type ReachControlPlane = (ground: Ground, opened: AsyncDisposableStack) => Promise<ControlPlane>;

interface ClusterParts {
  readonly shape: ClusterShape;
  readonly flavors: readonly CniFlavor[];
  readonly folder: string;
  readonly progress: Progress;
  readonly controlPlane: ReachControlPlane;
}

/** Builds everything; what was opened is closed again when something fails. */
export function openCluster(parts: ClusterParts): Promise<Cluster> {
  return orDispose((opened) => build(parts, opened));
}

export function programsOf(flavors: readonly CniFlavor[]): readonly NeededProgram[] {
  return flavors.flatMap(({ name, programs }) => programs.map((one) => ({ by: name, ...one })));
}

/** Devices that the flavors of a request open and this user may not. */
export async function lackingDevices(flavors: readonly CniFlavor[]): Promise<readonly Lack[]> {
  const needed = flavors.flatMap(({ name, devices = [] }) => devices.map((device) => ({ name, device })));
  const lacking = await Promise.all(
    needed.map(({ name, device }) =>
      access(device, constants.R_OK | constants.W_OK).then(
        () => undefined,
        () => ({ what: `${name} needs ${device}, which this user may not open` }),
      ),
    ),
  );
  return lacking.filter((one) => one !== undefined);
}

export function lackingFamilies(flavors: readonly CniFlavor[], { families }: ClusterRequest): readonly Lack[] {
  return flavors.flatMap(({ name, podCIDRs }) =>
    families.filter((family) => podCIDRs[family] === undefined).map((family) => ({ what: `${name} has no ${family}` })),
  );
}

interface StateSources {
  readonly nodes: readonly (readonly [{ readonly runner: Runner }, ClusterNode])[];
  readonly networks: ReadonlyMap<string, Pick<PodNetwork, "state">>;
  /** Of the run: logs are looked for in it and one level below. */
  readonly folder: string;
}

type Files = Record<string, string>;

export async function clusterState({ nodes, networks, folder }: StateSources): Promise<Readonly<Files>> {
  const parts = await Promise.all([
    ...nodes.map(([ground, node]) => nodeState(ground.runner, node)),
    ...[...networks].map(([name, network]) => networkState(name, network)),
    logs(folder),
  ]);
  return Object.assign({}, ...parts);
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
      ca: controlPlane.ca,
      run: (argv, options) => runnerIn(ground.fabric).run(argv, options),
      stop: controlPlane.stopApiServer,
      start: controlPlane.startApiServer,
      namespace: ground.fabric,
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
    (proxy, how) => startFlags(shape, settings(how.memory), proxy, how),
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
    namespaceFile: namespace.file,
    agent,
    send: (probe) => peer.send(probe),
    run: (argv) => runner.run(argv),
    startInstance: (name, ...flags) => startInstance(name, "nftables", ...flags),
    startLocalInstance: (name) => startInstance(name, "userspace", "--userspace-only", `--bind-address=${address}`),
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

/** Sets the pod networks up side by side, and waits until each one works. */
async function installNetworks(
  flavors: readonly CniFlavor[],
  ground: Ground,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<ReadonlyMap<string, PodNetwork>> {
  const installed = await Promise.all(
    flavors.map(
      async (flavor) => [flavor.name, await install(flavor, ground, join(folder, flavor.name), opened)] as const,
    ),
  );
  return new Map(installed);
}

async function install(
  flavor: CniFlavor,
  ground: Ground,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<PodNetwork> {
  await mkdir(folder, { recursive: true });
  const { nodes, families } = ground;
  return installFlavor(flavor, { nodes, families, folder, daemon: daemonsHere(folder, opened) }, opened);
}

/** What is asked of every node; a program that is not there says so in its file. */
const QUESTIONS: Readonly<Record<string, Argv>> = {
  "iptables.txt": ["iptables-save", "-c"],
  "ip6tables.txt": ["ip6tables-save", "-c"],
  "nft.txt": ["nft", "list", "ruleset"],
  "ipset.txt": ["ipset", "save"],
  "ipvs.txt": ["ipvsadm", "-Ln"],
  "conntrack.txt": ["conntrack", "-L"],
  "conntrack6.txt": ["conntrack", "-L", "-f", "ipv6"],
  "addresses.txt": ["ip", "address"],
  "routes.txt": ["ip", "route", "show", "table", "all"],
  "routes6.txt": ["ip", "-6", "route", "show", "table", "all"],
  "neighbors.txt": ["ip", "neighbor"],
};

async function nodeState(runner: Runner, { name, agent }: ClusterNode): Promise<Files> {
  const answers = await Promise.all(
    Object.entries(QUESTIONS).map(async ([file, argv]) => [`${name}/${file}`, await output(runner, argv)] as const),
  );
  const ownership = await agent.get("/ownership").catch(messageOf);
  const metrics = await agent.get("/metrics").catch(messageOf);
  return {
    ...Object.fromEntries(answers),
    [`${name}/agent.log`]: await agent.log(),
    [`${name}/ownership.json`]: ownership,
    [`${name}/metrics.txt`]: metrics,
  };
}

function output(runner: Runner, argv: Argv): Promise<string> {
  return runner.run(argv, { timeoutMs: 60_000 }).then(({ stdout }) => stdout, messageOf);
}

async function networkState(name: string, network: Pick<PodNetwork, "state">): Promise<Files> {
  const files = await network.state().catch((error) => ({ "error.txt": messageOf(error) }));
  return Object.fromEntries(Object.entries(files).map(([file, text]) => [`${name}/${file}`, text]));
}

async function logs(folder: string): Promise<Files> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".log"));
  const texts = await Promise.all(
    names.map(async (name) => [`logs/${name}`, await readFile(join(folder, name), "utf8").catch(messageOf)] as const),
  );
  return Object.fromEntries(texts);
}
