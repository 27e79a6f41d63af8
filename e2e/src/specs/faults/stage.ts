import type { ClusterNode } from "../../provider/cluster.ts";
import { expectAnswers } from "../expect.ts";
import { nearAndFar } from "../near-and-far.ts";
import type { Scene } from "../scene.ts";

export const ports = [{ port: 80 }];

/** Two endpoints that serve all the while, and everybody who calls them. */
export async function openStage(scene: Scene) {
  const { cluster, family } = scene;
  const [first, second] = scene.nodes;
  const { caller, by } = await nearAndFar(scene);
  const other = await scene.pod({ node: second });
  const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports });
  const atService = { to: service.clusterIP, port: 80 };
  const atNode = { to: second.addresses[family] ?? "", port: service.nodePort };
  await expectAnswers(caller, atService, { by });
  await expectAnswers(other, atService, { by });
  await expectAnswers(cluster.outside, atNode, { by });
  const ways = [
    { from: caller, ...atService },
    { from: other, ...atService },
    { from: first, ...atService },
    { from: cluster.outside, ...atNode },
  ];
  return { caller, by, atService, ways };
}

export const each = (scene: Scene, act: (node: ClusterNode) => Promise<void>) =>
  Promise.all(scene.cluster.nodes.map(act));

/** How long traffic may last, in milliseconds: everything takes longer in a guest, where requests are few. */
export function longestTraffic({ cluster }: Scene): number | undefined {
  return cluster.ownKernel === true ? 300_000 : undefined;
}
