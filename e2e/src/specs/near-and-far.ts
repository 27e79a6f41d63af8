import type { Scene } from "./scene.ts";

/** One endpoint on each of the first two nodes, and a pod that calls from the first. @param app their label */
export async function nearAndFar(scene: Scene, app = "web") {
  const [first, second] = scene.nodes;
  const [near, far, caller] = await Promise.all([
    scene.pod({ node: first, app }),
    scene.pod({ node: second, app }),
    scene.pod({ node: first }),
  ]);
  return { near, far, caller, by: [near, far] };
}
