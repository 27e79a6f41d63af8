import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { familyOf } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { BRIDGED_IS_SEEN } from "../../../cni/bridge-plugin.ts";
import { type CniFlavor, masqueradeOutgoing } from "../../../cni/flavor.ts";
import type { ApiClient } from "../../../control-plane/api-client.ts";
import { applyLines, applySettings, type IpLines, route } from "../../../wire.ts";
import type { ClusterRequest, Progress } from "../../provider.ts";
import { type KindCluster, type KindNode, PATIENCE_MS } from "../kind-cluster.ts";
import type { Machine } from "../machine.ts";
import { delegated } from "./delegated.ts";
import { flannel, type KindNetwork, type KindNetworkGround, type Source, writeConfig } from "./network.ts";

/** Where nodes have the networks' folder of this machine: its sockets, configurations and databases. */
export const NODE_FOLDER = "/run/fairlead-e2e";

/** Those that take what the controller manager gives each node of the cluster's one pod CIDR. */
const OF_NODES = ["bridge", "flannel", "flannel:host-gw"];

/** Why kind cannot have the networks of a request in their order. */
export function misplacedNetwork({ cni }: Pick<ClusterRequest, "cni">): string | undefined {
  const late = cni.slice(1).find((name) => OF_NODES.includes(name));
  return late === undefined
    ? undefined
    : `${late} takes its addresses from the nodes' pod CIDRs: name it first in --cni`;
}

interface NetworksGround {
  readonly installers: Source["installers"];
  readonly cluster: KindCluster;
  readonly machine: Machine;
  readonly api: ApiClient;
  readonly flavors: readonly CniFlavor[];
  readonly families: readonly IPFamily[];
  readonly request: ClusterRequest;
  /** Is `NODE_FOLDER` on every node. */
  readonly folder: string;
  readonly progress: Progress;
}

/** The pod networks of a cluster, side by side. */
interface KindNetworks {
  readonly running: ReadonlyMap<string, KindNetwork>;
  /** What a pod's spec says to come into a network. */
  podSpec(network: string): Readonly<Record<string, unknown>>;
}

/** The first network is that of every pod that does not say; each of the others has a runtime class. */
export async function installNetworks(ground: NetworksGround, opened: AsyncDisposableStack): Promise<KindNetworks> {
  const { installers, flavors, request, folder, ...fields } = ground;
  const running = new Map<string, KindNetwork>();
  for (const [index, flavor] of flavors.entries()) {
    const installer = installers[request.cni[index] ?? ""];
    if (installer === undefined) throw new Error(`kind has no pod network ${flavor.name}`);
    const configFolder = index === 0 ? "/etc/cni/net.d" : `/etc/cni/${flavor.name}.d`;
    const own = join(folder, flavor.name);
    await mkdir(own, { recursive: true });
    const nodeFolder = join(NODE_FOLDER, flavor.name);
    const { kubernetes } = request;
    const network = await installer({ ...fields, flavor, kubernetes, folder: own, nodeFolder, configFolder }, opened);
    running.set(flavor.name, network);
  }
  const others = flavors.slice(1).map(({ name }) => name);
  for (const name of others) {
    await ground.cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify(runtimeClass(name)) });
  }
  const timeout = `--timeout=${PATIENCE_MS / 1000}s`;
  await ground.cluster.kubectl(["wait", "--for=condition=Ready", "nodes", "--all", timeout], { timeoutMs: 0 });
  return {
    running,
    podSpec: (network) => (others.includes(network) ? { runtimeClassName: network } : {}),
  };
}

/** Pod networks that are made of packages and Go modules here. */
export const installers: Source["installers"] = {
  bridge,
  calico: delegated,
  flannel: flannel("vxlan"),
  "flannel:host-gw": flannel("host-gw"),
  ovn: delegated,
  ptp: delegated,
};

function runtimeClass(name: string) {
  return { apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name }, handler: name };
}

/** The CNI plugins bridge and host-local on every node's part of the pod CIDRs, and routes between the nodes. */
async function bridge(ground: KindNetworkGround): Promise<KindNetwork> {
  const { cluster, families, flavor, configFolder } = ground;
  const parts = await podCIDRs(ground);
  for (const node of cluster.nodes) {
    const others = cluster.nodes.filter((other) => other !== node);
    await applySettings(node.runner, BRIDGED_IS_SEEN);
    await applyLines(
      node.runner,
      others.flatMap((other) => routesTo(other, families, parts)),
    );
    // A host that refuses what leaves the pod network has no way to pods.
    for (const family of families) await masqueradeOutgoing(node.runner, family, flavor);
    const ranges = families.map((family) => [{ subnet: parts(node, family) }]);
    await writeConfig(node, configFolder, "bridge", {
      type: "bridge",
      bridge: "cni0",
      isDefaultGateway: true,
      hairpinMode: true,
      ipam: { type: "host-local", ranges },
    });
  }
  return { state: async () => ({}) };
}

type Parts = (node: KindNode, family: IPFamily) => string;

function routesTo(other: KindNode, families: readonly IPFamily[], parts: Parts): IpLines {
  return families.map((family) => route(parts(other, family), { via: other.addresses[family] ?? "" }));
}

/** As the controller manager has divided them among the nodes. */
async function podCIDRs({ cluster }: KindNetworkGround): Promise<Parts> {
  const { stdout } = await cluster.kubectl(["get", "nodes", "-o", "json"]);
  const { items }: NodeList = JSON.parse(stdout);
  return ({ name }, family) => {
    const cidrs = items.find(({ metadata }) => metadata.name === name)?.spec.podCIDRs ?? [];
    const found = cidrs.find((cidr) => familyOf(cidr) === family);
    if (found === undefined) throw new Error(`${name} has no part of the ${family} pod CIDR`);
    return found;
  };
}

interface NodeList {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly spec: { readonly podCIDRs?: readonly string[] };
  }[];
}
