import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { CniFlavour } from "../../../../cni/flavour.ts";
import type { Cluster } from "../../cluster.ts";
import type { ClusterRequest, Progress } from "../../provider.ts";
import type { KindCluster } from "../kind-cluster.ts";
import { bridge } from "./bridge.ts";
import type { KindNetwork, KindNetworkGround } from "./network.ts";

/** How each pod network is set up on kind, by its flavour's name. */
const installers: Readonly<Record<string, (ground: KindNetworkGround) => Promise<KindNetwork>>> = { bridge };

export const kindFlavours: readonly string[] = Object.keys(installers);

export interface NetworksGround {
  readonly cluster: KindCluster;
  readonly flavours: readonly CniFlavour[];
  readonly families: readonly IPFamily[];
  readonly request: ClusterRequest;
  readonly folder: string;
  readonly progress: Progress;
}

/** The pod networks of a cluster, side by side. */
export interface KindNetworks {
  readonly running: ReadonlyMap<string, KindNetwork>;
  /** What a pod's spec says to come into a network. */
  podSpec(network: string): Readonly<Record<string, unknown>>;
  serve: Cluster["serveByNetwork"];
}

/** The first network is that of every pod that does not say; each of the others has a runtime class. */
export async function installNetworks(ground: NetworksGround, opened: AsyncDisposableStack): Promise<KindNetworks> {
  const running = new Map<string, KindNetwork>();
  for (const [index, flavour] of ground.flavours.entries()) {
    const network = await install(ground, flavour, index === 0 ? "/etc/cni/net.d" : `/etc/cni/${flavour.name}.d`);
    opened.defer(() => network.dispose());
    running.set(flavour.name, network);
  }
  const others = ground.flavours.slice(1).map(({ name }) => name);
  await ground.cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify(list(others.map(runtimeClass))) });
  await ground.cluster.kubectl(["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=180s"], {
    timeoutMs: 200_000,
  });
  return {
    running,
    podSpec: (network) => (others.includes(network) ? { runtimeClassName: network } : {}),
    serve: async (name, service) => {
      const serve = running.get(name)?.serve;
      if (serve === undefined) throw new Error(`${name} has no load balancer of its own`);
      await serve(service);
    },
  };
}

async function install(ground: NetworksGround, flavour: CniFlavour, configFolder: string): Promise<KindNetwork> {
  const installer = installers[flavour.name];
  if (installer === undefined) throw new Error(`kind has no pod network ${flavour.name}`);
  const folder = join(ground.folder, flavour.name);
  await mkdir(folder, { recursive: true });
  const { cluster, families, request, progress } = ground;
  return installer({ cluster, flavour, families, kubernetes: request.kubernetes, folder, configFolder, progress });
}

function list(items: readonly unknown[]) {
  return { apiVersion: "v1", kind: "List", items };
}

function runtimeClass(name: string) {
  return { apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name }, handler: name };
}
