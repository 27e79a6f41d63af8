import { expectAnswers } from "../expect.ts";
import { startTraffic } from "../faults/traffic.ts";
import { nearAndFar } from "../near-and-far.ts";
import type { Scene } from "../scene.ts";
import type { ServiceHandle } from "../service.ts";

/** All the rollouts of one spec. */
export const TRAFFIC_MS = 15 * 60_000;

/** A pod at a ClusterIP and at UDP port 53, a client outside at a node port. */
export async function startLoad(scene: Scene) {
  const { cluster, family, nodes } = scene;
  const { caller, by } = await nearAndFar(scene);
  const service = await scene.service("load", {
    type: "NodePort",
    selector: { app: "web" },
    ports: [
      { name: "http", port: 80 },
      { name: "dns", port: 53, protocol: "UDP" },
    ],
  });
  const atService = { to: service.clusterIP, port: 80 };
  const atNode = { to: nodes[1].addresses[family] ?? "", port: service.nodePort };
  const dns = { to: service.clusterIP, port: 53, protocol: "UDP" } as const;
  await expectAnswers(caller, atService, { by });
  await expectAnswers(caller, dns, { by });
  await expectAnswers(cluster.outside, atNode, { by });
  const ways = [
    { from: caller, ...atService },
    { from: cluster.outside, ...atNode },
    { from: caller, ...dns },
  ];
  return startTraffic(ways, scene.later, TRAFFIC_MS);
}

/** Whoever serves takes in a new service, with one endpoint. */
export async function expectServed(scene: Scene, name: string): Promise<ServiceHandle> {
  const app = `app-${name}`;
  const pod = await scene.pod({ node: scene.nodes[1], app });
  const caller = await scene.pod({ node: scene.nodes[0] });
  const service = await scene.service(name, { selector: { app }, ports: [{ port: 80 }] });
  await expectAnswers(caller, { to: service.clusterIP, port: 80 }, { by: [pod] });
  return service;
}
