import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { type ControlPlane, ETCD, relayArgv, startControlPlane } from "@fairlead/lab/control-plane/control-plane";
import type { ControlPlanePaths } from "@fairlead/lab/control-plane/programs";
import { isThere } from "@fairlead/lab/support/machine";
import { startDaemon } from "@fairlead/lab/support/processes";
import { START_MS, waitUntil } from "@fairlead/lab/support/wait-until";
import {
  ANYWHERE,
  address,
  applyLines,
  applySettings,
  kernelSettings,
  route,
  runnerIn,
  up,
  veth,
} from "@fairlead/lab/wire";
import { Etcd, nodeObject } from "./objects.ts";

/** A control plane, and nodes alongside it as they are needed. No packet leaves it. */
export interface Bed {
  readonly controlPlane: ControlPlane;
  /** The control plane's. */
  readonly etcd: Etcd;
  /** The control plane's. */
  readonly fabric: NetworkNamespace;
  /** Where logs and files of this run are kept. */
  readonly folder: string;
  /** A node without a rule, with an address of its own. All stand for the one Node object that there is. */
  openNode(): Promise<NetworkNamespace>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The control plane's address. */
export const FABRIC = "172.30.0.1";
const PREFIX = 16;

/** @param number from 1 */
function nodeAddress(number: number): string {
  return `172.30.${1 + (number >> 8)}.${number & 255}`;
}

export async function openBed(programs: ControlPlanePaths, folder: string): Promise<Bed> {
  const opened = new AsyncDisposableStack();
  try {
    const fabric = opened.use(await createNamespace());
    await applySettings(runnerIn(fabric), kernelSettings("fabric"));
    await applyLines(runnerIn(fabric), ["link add br0 type bridge", up("br0"), address("br0", `${FABRIC}/${PREFIX}`)]);
    const controlPlane = await openControlPlane(programs, fabric, folder);
    opened.defer(() => controlPlane.dispose());
    const etcd = await openEtcd(fabric, folder, opened);
    const { object, status } = nodeObject(nodeAddress(1));
    await controlPlane.api.create(object);
    await controlPlane.api.patch(`${objectPath(object)}/status`, status);
    const kept = opened.move();
    let nodes = 0;
    return {
      controlPlane,
      etcd,
      fabric,
      folder,
      openNode: () => openNode(fabric, ++nodes),
      [Symbol.asyncDispose]: () => kept.disposeAsync(),
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function openControlPlane(
  programs: ControlPlanePaths,
  namespace: NetworkNamespace,
  folder: string,
): Promise<ControlPlane> {
  const own = join(folder, "control-plane");
  await mkdir(own, { recursive: true });
  const serviceCIDRs = ["10.96.0.0/12"];
  // Slices are written here, ten thousand at a time.
  return startControlPlane({ programs, namespace, address: FABRIC, serviceCIDRs, folder: own, controllers: false });
}

async function openEtcd(fabric: NetworkNamespace, folder: string, opened: AsyncDisposableStack): Promise<Etcd> {
  const socketPath = join(folder, "etcd.sock");
  const argv = relayArgv(socketPath, ETCD);
  const relay = await startDaemon(fabric, { name: "etcd-relay", argv, logFile: join(folder, "etcd-relay.log") });
  opened.defer(() => relay.stop());
  const listens = async () => (await isThere(socketPath)) || undefined;
  await waitUntil("the socket that leads to etcd", START_MS, listens);
  const etcd = new Etcd(socketPath);
  opened.defer(() => etcd.close());
  return etcd;
}

async function openNode(fabric: NetworkNamespace, number: number): Promise<NetworkNamespace> {
  const link = `node${number}`;
  const node = await createNamespace({ alongside: fabric });
  await applySettings(runnerIn(node), kernelSettings("node-a"));
  await applyLines(runnerIn(fabric), [veth(link, "eth0", node.pid), `link set ${link} master br0`, up(link)]);
  const lines = [
    up("eth0"),
    address("eth0", `${nodeAddress(number)}/${PREFIX}`),
    route(ANYWHERE.IPv4, { via: FABRIC }),
  ];
  await applyLines(runnerIn(node), lines);
  return node;
}
