/** Services whose pods are in one network, in another one, or in several. */

import { expectAnswers, expectBytes, expectUntouched } from "../expect.ts";
import type { Spec } from "../spec.ts";
import { excludedNetwork, expectForeign, expectNoTrace, needsExcluded } from "./untouched.ts";

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
