import { expectAnswers, expectUntouched } from "../expect.ts";
import type { Scene } from "../scene.ts";
import { excludedNetwork } from "./networks.ts";
import { expectForeign } from "./untouched.ts";

const PORTS = [{ port: 80 }];

/**
 * A service of ours and one of the excluded network, each with an endpoint on the second node, and a pod of ours that
 * calls from the first. Resolves when every agent knows whose they are: ours answers, theirs is left alone.
 */
export async function openOwners(scene: Scene) {
  const [first, second] = scene.nodes;
  const network = excludedNetwork(scene.cluster).name;
  const [ours, theirs, caller] = await Promise.all([
    scene.pod({ node: second, app: "ours" }),
    scene.pod({ node: second, network, app: "theirs" }),
    scene.pod({ node: first }),
  ]);
  const own = await scene.service("ours", { selector: { app: "ours" }, ports: PORTS });
  const foreign = await scene.service("theirs", { selector: { app: "theirs" }, ports: PORTS });
  await expectForeign(scene, foreign.name);
  const atOwn = { to: own.clusterIP, port: 80 };
  const atForeign = { to: foreign.clusterIP, port: 80 };
  await expectAnswers(caller, atOwn, { by: [ours] });
  await expectUntouched(caller, atForeign);
  return { network, ours, theirs, caller, own, foreign, atOwn, atForeign };
}
