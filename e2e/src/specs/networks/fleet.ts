import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Pod } from "@fairlead/lab/provider/cluster";
import type { TrafficFlow } from "../faults/traffic.ts";
import type { Scene } from "../scene.ts";
import type { ServiceHandle } from "../service.ts";
import { untilEndpoints } from "./owners-on.ts";

const PORTS = [
  { name: "tcp", port: 80, protocol: "TCP" },
  { name: "udp", port: 80, protocol: "UDP" },
] as const;
const AT_ONCE = 5;
/** How long a pod goes on serving after its deletion: what a preStop hook does in clusters. */
const GRACE_MS = 3_000;

type Protocol = (typeof PORTS)[number]["protocol"];

/** Services with one pod each, which move from network to network. */
export interface Fleet {
  readonly names: readonly string[];
  /** A client's requests to the ClusterIP of each. */
  atClusterIPs(from: Client): readonly TrafficFlow[];
  /** The same at the node ports of the first node. */
  atNodePorts(from: Client): readonly TrafficFlow[];
  /** Replaces every pod by one in that network, some services at a time, as a rollout with a surge does. */
  moveTo(network: string): Promise<void>;
}

/**
 * @param count of the services; their pods are on both nodes, in the scene's network at first
 * @param protocols of the requests
 */
export async function openFleet(scene: Scene, count: number, protocols: readonly Protocol[]): Promise<Fleet> {
  const numbers = Array.from({ length: count }, (_, at) => at);
  const ships = await Promise.all(numbers.map((at) => openShip(scene, at)));
  const moveTo = async (network: string) => {
    for (let at = 0; at < ships.length; at += AT_ONCE) {
      await Promise.all(ships.slice(at, at + AT_ONCE).map((ship) => move(scene, ship, network)));
    }
  };
  const flows = (from: Client, target: (service: ServiceHandle) => Pick<TrafficFlow, "to" | "port">) =>
    protocols.flatMap((protocol) => ships.map(({ service }) => ({ from, protocol, ...target(service) })));
  const node = scene.nodes[0].addresses[scene.family] ?? "";
  return {
    names: ships.map(({ service }) => service.name),
    atClusterIPs: (from) => flows(from, ({ clusterIP }) => ({ to: clusterIP, port: 80 })),
    atNodePorts: (from) => flows(from, ({ nodePort }) => ({ to: node, port: nodePort })),
    moveTo,
  };
}

interface Ship {
  readonly service: ServiceHandle;
  pod: Pod;
}

async function openShip(scene: Scene, at: number): Promise<Ship> {
  const app = `web-${at}`;
  const pod = await scene.pod({ node: scene.nodes[at % 2 === 0 ? 0 : 1], app });
  // The API server gives both ports the same node port, as they have the same number.
  const service = await scene.service(app, { type: "NodePort", selector: { app }, ports: PORTS });
  return { service, pod };
}

async function move(scene: Scene, ship: Ship, network: string): Promise<void> {
  const { pod: old, service } = ship;
  ship.pod = await scene.pod({ node: old.node, network, app: service.name });
  await untilEndpoints(scene, service.name, 2);
  await old.terminate();
  await sleep(GRACE_MS);
  await old.remove();
}
