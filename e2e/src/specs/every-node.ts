import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import type { Scene } from "./scene.ts";

/** On all nodes at once. */
export async function each(scene: Scene, act: (node: ClusterNode) => Promise<void>): Promise<void> {
  await Promise.all(scene.cluster.nodes.map(act));
}

/** Afterwards every agent is started as usual. */
export function restoreAgents(scene: Scene): void {
  scene.later(() => each(scene, ({ agent }) => agent.restart()));
}
