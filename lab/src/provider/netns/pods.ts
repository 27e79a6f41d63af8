/** Pods as namespaces with servers, and what a kubelet would say of them. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IPFamily } from "@fairlead/core";
import type { Argv, Runner } from "@fairlead/kernel";
import type { PodNetwork } from "../../cni/flavor.ts";
import { type ApiClient, type ApiObject, objectPath } from "../../control-plane/api-client.ts";
import { startPeer } from "../../peer/process.ts";
import { networkStatus, type SecondaryNetwork } from "../../secondary.ts";
import { type Daemon, startDaemon } from "../../support/processes.ts";
import { runnerIn } from "../../wire.ts";
import { type ClusterNode, DNS_PORT, type DnsQuestion, type DnsRecord, POD_PORTS, type WantedPod } from "../cluster.ts";
import { podHandle, podObject, podStarter, scriptStarter } from "../pod-handle.ts";
import { type Ground, type GroundNode, podNamespace } from "./ground.ts";

interface PodGround {
  readonly ground: Ground;
  readonly api: ApiClient;
  readonly networks: ReadonlyMap<string, PodNetwork>;
  /** For logs. */
  readonly folder: string;
  groundNode(node: ClusterNode): GroundNode;
}

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

/** Debian package dnsmasq-base. */
export const DNS_PROGRAM = "dnsmasq";

type Addresses = Readonly<Partial<Record<IPFamily, string>>>;

/** What a kubelet would say of it: running, with these addresses, ready or not. */
export function podStatus(pod: Addresses, node: Addresses, ready: boolean): unknown {
  const conditions = ["Ready", "ContainersReady"].map((type) => condition(type, ready));
  return {
    status: {
      phase: "Running",
      conditions: [...conditions, condition("PodScheduled", true), condition("Initialized", true)],
      podIP: Object.values(pod)[0],
      podIPs: Object.values(pod).map((ip) => ({ ip })),
      hostIP: Object.values(node)[0],
      hostIPs: Object.values(node).map((ip) => ({ ip })),
    },
  };
}

export function nodeObject(name: string, zone: string): ApiObject {
  const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone };
  return { apiVersion: "v1", kind: "Node", metadata: { name, labels } };
}

export function nodeStatus(name: string, addresses: Addresses): unknown {
  const internal = Object.values(addresses).map((address) => ({ type: "InternalIP", address }));
  return {
    status: {
      addresses: [...internal, { type: "Hostname", address: name }],
      conditions: [condition("Ready", true)],
      allocatable: { cpu: "2", memory: "4Gi", pods: "110" },
    },
  };
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
    startScript: scriptStarter(namespace, undo),
    lookUp: (server: string, question: DnsQuestion) => lookUp(runner, server, question),
  };
}

/** A TXT record is made of strings of at most 255 bytes. */
const TEXT_PIECE = 200;
const RESOLVE = fileURLToPath(new URL("../../peer/resolve-main.ts", import.meta.url));

/**
 * A server that knows these names and nothing of the machine's; longer answers than 512 bytes it gives over TCP.
 *
 * @param hostsFile what `hostsText` gives: a name may have several addresses
 */
function dnsServerArgv(records: readonly DnsRecord[], hostsFile: string): Argv {
  return [
    DNS_PROGRAM,
    // In the foreground, and as the user that it is started by.
    "--no-daemon",
    "--conf-file=/dev/null",
    "--no-resolv",
    "--no-hosts",
    `--addn-hosts=${hostsFile}`,
    "--no-poll",
    "--edns-packet-max=512",
    `--port=${DNS_PORT}`,
    ...records.flatMap(({ name, type, value }) =>
      type === "TXT" ? `--txt-record=${[name, ...pieces(value)].join(",")}` : [],
    ),
  ];
}

/** The addresses, as /etc/hosts has them. */
function hostsText(records: readonly DnsRecord[]): string {
  return records.map(({ name, type, value }) => (type === "TXT" ? "" : `${value} ${name}\n`)).join("");
}

function pieces(text: string): readonly string[] {
  const count = Math.ceil(text.length / TEXT_PIECE);
  return Array.from({ length: count }, (_, at) => text.slice(at * TEXT_PIECE, (at + 1) * TEXT_PIECE));
}

async function lookUp(runner: Runner, server: string, { name, type }: DnsQuestion): Promise<readonly string[]> {
  const { stdout } = await runner.run([process.execPath, "--no-warnings", RESOLVE, server, name, type]);
  return JSON.parse(stdout);
}

function condition(type: string, holds: boolean) {
  return { type, status: holds ? "True" : "False", reason: "TestGround" };
}
