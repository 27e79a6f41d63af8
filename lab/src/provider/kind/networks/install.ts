import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { CniFlavor } from "../../../cni/flavor.ts";
import type { ApiClient } from "../../../control-plane/api-client.ts";
import type { ClusterRequest, Progress } from "../../provider.ts";
import type { KindCluster } from "../kind-cluster.ts";
import type { Machine } from "../machine.ts";
import type { Source } from "../source.ts";
import { bridge } from "./bridge.ts";
import { delegated } from "./delegated.ts";
import { flannel } from "./manifest.ts";
import type { KindNetwork } from "./network.ts";

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
  await ground.cluster.kubectl(["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=180s"], {
    timeoutMs: 200_000,
  });
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
