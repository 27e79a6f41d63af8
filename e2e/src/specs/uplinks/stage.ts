import type { Client, ClusterNode } from "@fairlead/lab/provider/cluster";
import type { SecondUplink } from "@fairlead/lab/second-uplink";
import { expectAnswers } from "../expect.ts";
import type { TrafficFlow } from "../faults/traffic.ts";
import { nearAndFar } from "../near-and-far.ts";
import { able } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { ServiceHandle } from "../service.ts";

const PORTS = [
  { name: "tcp", port: 80 },
  { name: "udp", port: 80, protocol: "UDP" },
];

/** A node with two uplinks and two services that are reached by both. */
export interface Stage {
  readonly node: ClusterNode;
  readonly uplink: SecondUplink;
  readonly by: readonly Client[];
  readonly near: Client;
  /** Of policy Cluster, and of policy Local. */
  readonly services: readonly [Served, Served];
  readonly external: string;
}

interface Served {
  readonly service: ServiceHandle;
  readonly loadBalancer: string;
}

export async function openStage(scene: Scene): Promise<Stage> {
  const { cluster, family } = scene;
  const [node] = scene.nodes;
  const uplink = await able(node.openSecondUplink)();
  scene.later(uplink.dispose);
  const { near, by } = await nearAndFar(scene);
  const external = cluster.gateAddress(node, family);
  const serve = async (name: string, fields: Readonly<Record<string, unknown>>): Promise<Served> => {
    const spec = { type: "LoadBalancer", selector: { app: "web" }, ports: PORTS, ...fields };
    const service = await scene.service(name, spec);
    const loadBalancer = cluster.gateAddress(node, family);
    await service.setIngress([loadBalancer]);
    return { service, loadBalancer };
  };
  const services = [
    await serve("web", { externalIPs: [external] }),
    await serve("kept", { externalTrafficPolicy: "Local" }),
  ] as const;
  return { node, uplink, by, near, services, external };
}

/** All addresses of the services, asked by a client to which the node has that address. */
function flowsOf({ services: [web, kept], external }: Stage, from: Client, nodeAddress: string): TrafficFlow[] {
  return [
    { from, to: nodeAddress, port: web.service.nodePort },
    { from, to: web.loadBalancer, port: 80 },
    { from, to: external, port: 80 },
    { from, to: web.loadBalancer, port: 80, protocol: "UDP" },
    { from, to: kept.loadBalancer, port: 80 },
    { from, to: kept.loadBalancer, port: 80, protocol: "UDP" },
    { from, to: nodeAddress, port: kept.service.nodePort },
  ];
}

/** What a client of the first uplink asks. */
export const onFirst = (stage: Stage, { cluster, family }: Scene) =>
  flowsOf(stage, cluster.outside, stage.node.addresses[family] ?? "");
/** The same of the second. */
export const onSecond = (stage: Stage, { family }: Scene) =>
  flowsOf(stage, stage.uplink.client, stage.uplink.address(family));

/** @throws Error when one of them is not answered by the endpoints of its service's policy */
export async function expectAll({ near, by, services: [, kept] }: Stage, flows: readonly TrafficFlow[]): Promise<void> {
  const isLocal = ({ to, port }: TrafficFlow) => to === kept.loadBalancer || port === kept.service.nodePort;
  await Promise.all(flows.map((flow) => expectAnswers(flow.from, flow, { by: isLocal(flow) ? [near] : by })));
}
