import { setTimeout as sleep } from "node:timers/promises";
import { expectAnswers } from "../expect.ts";
import { nearAndFar } from "../near-and-far.ts";
import type { Scene } from "../scene.ts";
import type { Figures, Spec } from "../spec.ts";
import { startTraffic, withoutFailure } from "./traffic.ts";

export { each, restoreAgents } from "../every-node.ts";

export const COMMON = { suite: "faults", eachFamily: false, alone: true } as const;

export const PORTS = [{ port: 80 }];

/** Two endpoints that serve all the while, and everybody who calls them. */
export async function openStage(scene: Scene) {
  const { cluster, family } = scene;
  const [first, second] = scene.nodes;
  const { caller, by } = await nearAndFar(scene);
  const other = await scene.pod({ node: second });
  const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports: PORTS });
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

/**
 * A fault during which no request may fail.
 *
 * @param fault may give further figures
 */
export function withoutLoss(
  name: string,
  fault: (scene: Scene) => Promise<Figures | undefined> | Promise<void>,
  fields: Pick<Spec, "unfit" | "about"> = {},
): Spec {
  return {
    ...COMMON,
    ...fields,
    name,
    run: async (scene) => {
      const { ways, caller, by, atService } = await openStage(scene);
      const traffic = startTraffic(ways, scene.later, longestTraffic(scene));
      await sleep(1_000);
      const more = await fault(scene);
      await sleep(1_000);
      const seen = withoutFailure(await traffic.stop());
      await expectAnswers(caller, atService, { by });
      return { ...seen, ...more };
    },
  };
}

/** A service and its endpoint that come now are served on every node. */
export async function expectLate(
  scene: Scene,
  { name = "late", withinMs }: { readonly name?: string; readonly withinMs?: number } = {},
): Promise<void> {
  const late = await scene.pod({ node: scene.nodes[0], app: name });
  const service = await scene.service(name, { selector: { app: name }, ports: PORTS });
  const target = { to: service.clusterIP, port: 80, ...(withinMs !== undefined && { withinMs }) };
  for (const node of scene.nodes) await expectAnswers(node, target, { by: [late] });
}

/** How long traffic may last, in milliseconds: everything takes longer in a guest, where requests are few. */
export function longestTraffic({ cluster }: Scene): number | undefined {
  return cluster.ownKernel === true ? 300_000 : undefined;
}
