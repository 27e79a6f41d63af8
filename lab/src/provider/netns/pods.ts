import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PodNetwork } from "../../cni/flavor.ts";
import { type ApiClient, objectPath } from "../../control-plane/api-client.ts";
import { startPeer } from "../../peer/process.ts";
import { networkStatus, type SecondaryNetwork } from "../../secondary/network.ts";
import { type Daemon, startDaemon } from "../../support/daemon.ts";
import { startScript } from "../../support/script.ts";
import { runnerIn } from "../../wire/apply.ts";
import { type DnsQuestion, type DnsRecord, POD_PORTS, type WantedPod } from "../cluster.ts";
import type { ClusterNode } from "../node.ts";
import { podHandle, podStarter } from "../pod-handle.ts";
import { podObject } from "../pod-object.ts";
import { dnsServerArgv, hostsText, lookUp } from "./dns-server.ts";
import { type Ground, type GroundNode, podNamespace } from "./ground.ts";
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

/** Starts pods, and numbers them by node and network. */
export function numberedPods(place: PodGround) {
  const counts = new Map<string, number>();
  const attach = (node: GroundNode, network: string, undo: AsyncDisposableStack) => {
    const key = `${node.name} ${network}`;
    const index = (counts.get(key) ?? 0) + 1;
    counts.set(key, index);
    return attached(place, network, { node, index }, undo);
  };
  const starter = podStarter(async (wanted, undo) => {
    const node = place.groundNode(wanted.node);
    return openPod(place, wanted, { node, ...(await attach(node, wanted.network, undo)) }, undo);
  });
  return { ...starter, attach };
}

/** A namespace on a pod network; it ends with `undo`. */
async function attached(
  { ground, networks }: PodGround,
  of: string,
  { node, index }: { readonly node: GroundNode; readonly index: number },
  undo: AsyncDisposableStack,
) {
  const network = networks.get(of);
  if (network === undefined) throw new Error(`there is no pod network ${of} in this cluster`);
  const name = `${node.name.slice("node-".length)}${index}-${of}`;
  const namespace = undo.use(await podNamespace(ground));
  const runner = runnerIn(namespace);
  const toAttach = { name, node, index, namespace, runner };
  const addresses = await network.attach(toAttach);
  undo.defer(() => network.detach(toAttach));
  return { name, namespace, runner, addresses };
}

async function openPod(
  { api, folder }: PodGround,
  wanted: WantedPod,
  { node, name, namespace, runner, addresses }: { readonly node: GroundNode } & Awaited<ReturnType<typeof attached>>,
  undo: AsyncDisposableStack,
) {
  const peer = await startPeer(namespace, { name, listen: POD_PORTS });
  undo.defer(() => peer.stop());
  const object = podObject(name, wanted, { containers: [{ name: "peer", image: "peer" }] });
  const path = objectPath(object);
  const setReady = (ready: boolean) => api.patch(`${path}/status`, podStatus(addresses, node.addresses, ready));
  await api.create(object);
  undo.defer(() => api.delete(path));
  await setReady(wanted.ready ?? true);
  let dns: Daemon | undefined;
  undo.defer(async () => dns?.stop());
  return {
    ...podHandle({ name, wanted, addresses, api, path, peer, setReady }),
    serveDns: async (records: readonly DnsRecord[]) => {
      await dns?.stop();
      const [logFile, hosts] = [join(folder, `${name}-dns.log`), join(folder, `${name}-dns.hosts`)];
      await writeFile(hosts, hostsText(records));
      dns = await startDaemon(namespace, { name: `${name}-dns`, argv: dnsServerArgv(records, hosts), logFile });
    },
    join: async (network: SecondaryNetwork) => {
      const ips = await network.attach(node.runner, { name, pid: namespace.pid });
      const annotations = networkStatus(network, Object.values(addresses), ips);
      await api.patch(path, { metadata: { annotations } });
      return ips;
    },
    startScript: async (file: string, args?: readonly string[]) => {
      const script = await startScript(namespace, file, args);
      undo.defer(() => script.stop());
      return script;
    },
    lookUp: (server: string, question: DnsQuestion) => lookUp(runner, server, question),
  };
}
