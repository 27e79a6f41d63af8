import { modeNamed } from "@fairlead/lab/modes";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectRefused } from "../expect.ts";
import { openStage, PORTS } from "../faults/stage.ts";
import { startTraffic, withoutFailure } from "../faults/traffic.ts";
import { expectNoTrace } from "../multi-cni/untouched.ts";
import { able, needs } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { giveTo, NAME } from "./named.ts";

/** Where the instance is asked to serve them. */
const LOCAL_PORTS = { own: 18_080, moving: 18_081 } as const;
const TRAFFIC_MS = 15 * 60_000;

/** A service with the same endpoints as the stage's, and where it is served once the instance has it. */
async function openService(scene: Scene, name: keyof typeof LOCAL_PORTS, { addresses }: ClusterNode) {
  const port = LOCAL_PORTS[name];
  const annotations = { "fairlead.dev/local-port": String(port) };
  const service = await scene.service(name, { selector: { app: "web" }, ports: PORTS }, annotations);
  return {
    service,
    atClusterIP: { to: service.clusterIP, port: 80 },
    atLocalPort: { to: addresses[scene.family] ?? "", port },
  };
}

/** What the first proxy has in a node's kernel. */
async function rulesOf({ run }: ClusterNode, mode: string): Promise<string> {
  const { listings, linesOf } = modeNamed(mode).rules;
  const texts = await Promise.all(listings.map((argv) => run(argv)));
  return texts.flatMap(({ stdout }) => linesOf(stdout)).join("\n");
}

export const instanceOnLocalPorts: Spec = {
  name: "a second instance on local ports serves what is labeled for it and writes no rule: a label that changes under load",
  suite: "multi-cni",
  about: ["agent", "backend-userspace"],
  eachFamily: false,
  alone: true,
  unfit: needs("local-instance"),
  run: async (scene) => {
    const { cluster } = scene;
    const [first] = scene.nodes;
    const { caller, by, ways } = await openStage(scene);
    const own = await openService(scene, "own", first);
    const moving = await openService(scene, "moving", first);
    for (const { atClusterIP } of [own, moving]) await expectAnswers(caller, atClusterIP, { by });
    const traffic = startTraffic(ways, scene.later, TRAFFIC_MS);
    const before = await rulesOf(first, cluster.mode);
    const instance = await able(first.startLocalInstance)(NAME);
    scene.later(instance.remove);
    if ((await rulesOf(first, cluster.mode)) !== before) throw new Error(`${first.name} has other rules than before`);
    for (const { service, atLocalPort } of [own, moving]) {
      await giveTo(service, NAME);
      for (const from of [caller, first]) await expectAnswers(from, atLocalPort, { by });
      await expectNoTrace(scene, service.clusterIP);
    }
    await giveTo(moving.service, null);
    await expectAnswers(caller, moving.atClusterIP, { by });
    await expectRefused(caller, moving.atLocalPort);
    await instance.remove();
    await expectRefused(caller, own.atLocalPort);
    return withoutFailure(await traffic.stop());
  },
};
