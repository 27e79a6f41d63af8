import { objectPath } from "@fairlead/lab/control-plane/api-client";
import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectUntouched } from "../expect.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { endpointAt } from "./endpoint-at.ts";
import { expectForeign, expectNoTrace } from "./untouched.ts";

const PORTS = [{ port: 80 }];

function unfit({ elsewhere }: ClusterShape): string | undefined {
  return elsewhere === undefined
    ? "needs an excluded network that is not in the cluster: --exclude-cni elsewhere"
    : undefined;
}

/** Gives the service an endpoint in the excluded network that is not here. @returns what takes it away */
async function addElsewhere({ cluster, namespace, family }: Scene, service: string): Promise<() => Promise<void>> {
  const [network = ""] = (cluster.elsewhere?.[family] ?? "").split("/");
  const address = network.replace(/(\.0)+$|::$/, family === "IPv4" ? ".9.9" : "::9:9");
  const slice = endpointAt({ namespace, service, family, address });
  await cluster.api.create(slice);
  return () => cluster.api.delete(objectPath(slice));
}

/** A service with one endpoint, of ours, on the second node, and somebody on the first. */
async function openOurs(scene: Scene) {
  const [first, second] = scene.nodes;
  const [ours, caller] = await Promise.all([scene.pod({ node: second, app: "web" }), scene.pod({ node: first })]);
  return { ours, caller, service: await scene.service("web", { selector: { app: "web" }, ports: PORTS }) };
}

const untouched: Spec = {
  name: "a service of an excluded network that is not here leaves no trace on any node",
  suite: "multi-cni",
  unfit,
  run: async (scene) => {
    const [first] = scene.nodes;
    const caller = await scene.pod({ node: first });
    const service = await scene.service("foreign", { type: "NodePort", ports: PORTS });
    await addElsewhere(scene, service.name);
    await expectForeign(scene, service.name);
    await expectNoTrace(scene, service.clusterIP);
    for (const from of [caller, first]) await expectUntouched(from, { to: service.clusterIP, port: 80 });
  },
};

const mixed: Spec = {
  name: "mixed with endpoints of an excluded network that is not here: ours alone are used",
  suite: "multi-cni",
  unfit,
  run: async (scene) => {
    const [first] = scene.nodes;
    const { ours, caller, service } = await openOurs(scene);
    await addElsewhere(scene, service.name);
    for (const from of [caller, first]) {
      await expectAnswers(from, { to: service.clusterIP, port: 80 }, { by: [ours] });
    }
  },
};

const moving: Spec = {
  name: "a service that moves to an excluded network that is not here changes its owner, and back",
  suite: "multi-cni",
  unfit,
  run: async (scene) => {
    const [first] = scene.nodes;
    const { ours, caller, service } = await openOurs(scene);
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [ours] });
    const remove = await addElsewhere(scene, service.name);
    await ours.remove();
    await expectForeign(scene, service.name);
    await expectUntouched(caller, target);
    await expectNoTrace(scene, service.clusterIP);
    const next = await scene.pod({ node: first, app: "web" });
    await expectAnswers(caller, target, { by: [next] });
    await remove();
    await expectAnswers(caller, target, { by: [next] });
  },
};

export const elsewhere: readonly Spec[] = [untouched, mixed, moving];
