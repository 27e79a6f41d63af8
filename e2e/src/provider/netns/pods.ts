import { join } from "node:path";
import type { PodNetwork } from "../../../cni/flavour.ts";
import type { ApiClient, ApiObject } from "../../control-plane/api-client.ts";
import { objectPath } from "../../control-plane/api-client.ts";
import { runnerIn } from "../../lab/apply.ts";
import { startPeer } from "../../lab/peer-process.ts";
import { startDaemon } from "../../support/daemon.ts";
import { type ClusterNode, type Pod, podPorts, type WantedPod } from "../cluster.ts";
import { podObject } from "../pod-object.ts";
import { dnsServerArgv, lookUp } from "./dns-server.ts";
import type { Ground, GroundNode } from "./ground.ts";
import { podNamespace } from "./ground.ts";
import { podStatus } from "./pod-object.ts";

/** What pods are made of. */
export interface PodGround {
  readonly ground: Ground;
  readonly api: ApiClient;
  readonly networks: ReadonlyMap<string, PodNetwork>;
  /** For logs. */
  readonly folder: string;
  /** @throws Error when it is none of this cluster */
  groundNode(node: ClusterNode): GroundNode;
}

/** Starts pods, and numbers them. Pods that still run at the end are taken along with the namespaces. */
export function podStarter(place: PodGround) {
  const counts = new Map<string, number>();
  const running = new Set<Pod>();
  const start = async (wanted: WantedPod): Promise<Pod> => {
    const node = place.groundNode(wanted.node);
    const key = `${node.name} ${wanted.network}`;
    const index = (counts.get(key) ?? 0) + 1;
    counts.set(key, index);
    const pod = await startPod(place, wanted, node, index, () => running.delete(pod));
    running.add(pod);
    return pod;
  };
  const dispose = async () => {
    await Promise.all([...running].map((pod) => pod.remove()));
  };
  return { start, dispose };
}

async function startPod(
  { ground, api, networks, folder }: PodGround,
  wanted: WantedPod,
  node: GroundNode,
  index: number,
  removed: () => void,
): Promise<Pod> {
  const network = networks.get(wanted.network);
  if (network === undefined) throw new Error(`there is no pod network ${wanted.network} in this cluster`);
  const name = `${node.name.slice("node-".length)}${index}-${wanted.network}`;
  const undo = new AsyncDisposableStack();
  const namespace = undo.use(await podNamespace(ground));
  const runner = runnerIn(namespace);
  const toAttach = { name, node, index, namespace, runner };
  const addresses = await network.attach(toAttach);
  undo.defer(() => network.detach(toAttach));
  const peer = await startPeer(namespace, { name, listen: podPorts });
  undo.defer(() => peer.stop());
  const object = podObject(name, wanted, { containers: [{ name: "peer", image: "peer" }] });
  const path = objectPath(object);
  const status = (ready: boolean) => api.patch(`${path}/status`, podStatus(addresses, node.addresses, ready));
  await createPod(api, object);
  undo.defer(() => api.delete(path));
  await status(wanted.ready ?? true);
  return {
    name,
    addresses,
    network: wanted.network,
    node: wanted.node,
    namespace: wanted.namespace,
    send: (probe) => peer.send(probe),
    setReady: async (ready) => void (await status(ready)),
    setLabels: async (labels) => void (await api.patch(path, { metadata: { labels } })),
    terminate: () => api.delete(path, GRACE_SECONDS),
    serveDns: async (records) => {
      const logFile = join(folder, `${name}-dns.log`);
      const server = await startDaemon(namespace, { name: `${name}-dns`, argv: dnsServerArgv(records), logFile });
      undo.defer(() => server.stop());
    },
    lookUp: (server, question) => lookUp(runner, server, question),
    remove: async () => {
      removed();
      await undo.disposeAsync();
    },
  };
}

/** Longer than any spec. */
const GRACE_SECONDS = 600;

async function createPod(api: ApiClient, object: ApiObject): Promise<void> {
  await api.create(object);
}
