/** Services whose pods are in one network, in another one, in several, or elsewhere. */

import { objectPath } from "@fairlead/lab/control-plane/api-client";
import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectBytes, expectUntouched } from "../expect.ts";
import type { Scene, Spec } from "../spec.ts";
import { endpointAt, excludedNetwork, expectForeign, expectNoTrace, needsExcluded } from "./untouched.ts";

const PORTS = [{ port: 80 }];

const eachOwn: Spec = {
  name: "each network that is ours: its service reaches its pods from pods of all of ours",
  suite: "multi-cni",
  unfit: ({ networks }) =>
    networks.filter(({ excluded }) => !excluded).length > 1 ? undefined : "needs two networks that are ours",
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const own = scene.cluster.networks.filter(({ excluded }) => !excluded);
    const callers = await Promise.all(own.map(({ name }) => scene.pod({ node: first, network: name })));
    for (const { name: network } of own) {
      const webs = await Promise.all([first, second].map((node) => scene.pod({ node, network, app: network })));
      const service = await scene.service(network, { selector: { app: network }, ports: PORTS });
      for (const caller of callers) await expectAnswers(caller, { to: service.clusterIP, port: 80 }, { by: webs });
    }
  },
};

const excludedCalls: Spec = {
  name: "pods of the excluded network call our service, masqueraded to their node",
  suite: "multi-cni",
  unfit: needsExcluded,
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const network = excludedNetwork(scene.cluster).name;
    const [near, far, ...callers] = await Promise.all([
      scene.pod({ node: first, app: "web" }),
      scene.pod({ node: second, app: "web" }),
      scene.pod({ node: first, network }),
      scene.pod({ node: second, network }),
    ]);
    const service = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    for (const caller of callers) {
      const notSeen = caller.addresses[scene.family] ?? "";
      await expectAnswers(caller, { to: service.clusterIP, port: 80 }, { by: [near, far], notSeen });
    }
  },
};

const foreign: Spec = {
  name: "a service of the excluded network leaves no trace on any node, not even at its node port",
  suite: "multi-cni",
  unfit: needsExcluded,
  run: async (scene) => {
    const { cluster, family } = scene;
    const [first, second] = scene.nodes;
    const network = excludedNetwork(cluster).name;
    const [, , caller] = await Promise.all([
      scene.pod({ node: first, network, app: "foreign" }),
      scene.pod({ node: second, network, app: "foreign" }),
      scene.pod({ node: first }),
    ]);
    const spec = { type: "NodePort", selector: { app: "foreign" }, ports: PORTS };
    const service = await scene.service("foreign", spec);
    await expectForeign(scene, service.name);
    await expectUntouched(caller, { to: service.clusterIP, port: 80 });
    await expectUntouched(first, { to: service.clusterIP, port: 80 });
    await expectNoTrace(scene, service.clusterIP);
    await scene.until("a closed port on every node", async () => {
      const to = first.addresses[family] ?? "";
      const probe = { protocol: "TCP", to, port: service.nodePort, count: 1, parallel: 1, timeoutMs: 2_500 } as const;
      const [result] = await cluster.outside.send(probe);
      return result?.kind === "refused" ? undefined : result?.kind;
    });
  },
};

const mixed: Spec = {
  name: "mixed service: only our endpoints are used, and all of them by another network's own load balancer",
  suite: "multi-cni",
  unfit: needsExcluded,
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const { name: network, ownLoadBalancer } = excludedNetwork(scene.cluster);
    const [ours, theirs, caller, stranger] = await Promise.all([
      scene.pod({ node: second, app: "mixed" }),
      scene.pod({ node: first, network, app: "mixed" }),
      scene.pod({ node: first }),
      scene.pod({ node: second, network }),
    ]);
    const service = await scene.service("mixed", { selector: { app: "mixed" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    for (const from of [caller, first]) await expectAnswers(from, target, { by: [ours] });
    await expectAnswers(stranger, target, { by: ownLoadBalancer ? [ours, theirs] : [ours] });
  },
};

const MEBIBYTES = 4;

const large: Spec = {
  name: `${MEBIBYTES} MiB from network to network, through our service and from pod to pod, to the other node`,
  suite: "multi-cni",
  unfit: needsExcluded,
  run: async (scene) => {
    const { family } = scene;
    const [first, second] = scene.nodes;
    const network = excludedNetwork(scene.cluster).name;
    const [web, ours, theirs, theirWeb] = await Promise.all([
      scene.pod({ node: second, app: "web" }),
      scene.pod({ node: first }),
      scene.pod({ node: first, network }),
      scene.pod({ node: second, network }),
    ]);
    const service = await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    const atService = { to: service.clusterIP, port: 80 };
    await expectAnswers(theirs, atService, { by: [web] });
    await expectBytes(theirs, atService, MEBIBYTES << 20);
    await expectBytes(theirs, { to: web.addresses[family] ?? "", port: 80 }, MEBIBYTES << 20);
    await expectBytes(ours, { to: theirWeb.addresses[family] ?? "", port: 80 }, MEBIBYTES << 20);
    await expectBytes(theirs, { to: theirWeb.addresses[family] ?? "", port: 80 }, MEBIBYTES << 20);
  },
};

export const sideBySide: readonly Spec[] = [eachOwn, excludedCalls, foreign, mixed, large];

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

const mixedElsewhere: Spec = {
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

export const elsewhere: readonly Spec[] = [untouched, mixedElsewhere, moving];

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
