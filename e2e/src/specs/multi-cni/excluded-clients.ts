import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { expectAnswers, expectRefused, expectUntouched, requireLogged } from "../expect.ts";
import { each, needs, notIn, onlyIn, restoreAgents, type Scene, type Spec } from "../spec.ts";
import {
  excludedNetwork,
  expectForeign,
  expectNoTrace,
  needsExcluded,
  needsOwnLoadBalancer,
  OWNERSHIP,
  openOwners,
} from "./untouched.ts";

const PORTS = [{ port: 80 }];

const onlyOthers = notIn(["ipvs"], "ipvs mode cannot distinguish the clients of an address");
const LIKE_CLUSTER_IP = "as by --excluded-frontends=cluster-ip";

/** Every agent serves so, and is as ever after the spec. Pods of the excluded network serve, others call. */
async function openTheirs(scene: Scene) {
  const [first, second] = scene.nodes;
  const network = excludedNetwork(scene.cluster).name;
  restoreAgents(scene);
  await each(scene, ({ agent }) => agent.restart({ flags: ["--excluded-frontends=excluded-clients"] }));
  const [near, far, own, theirs] = await Promise.all([
    scene.pod({ node: first, network, app: "theirs" }),
    scene.pod({ node: second, network, app: "theirs" }),
    scene.pod({ node: first }),
    scene.pod({ node: first, network }),
  ]);
  const spec = { type: "NodePort", selector: { app: "theirs" }, ports: PORTS };
  const service = await scene.service("theirs", spec);
  await expectForeign(scene, service.name);
  const target = { to: service.clusterIP, port: 80 };
  return { service, target, own, theirs, by: [near, far], seen: theirs.addresses[scene.family] ?? "" };
}

export const excludedClients: Spec = {
  name: "excluded-clients: nodes and our pods reach a service of the excluded network, whose own load balancer answers its pods",
  suite: "multi-cni",
  about: ["endpoint-filter", "backend-iptables", "backend-nftables", "backend-userspace"],
  byItself: true,
  unfit: (shape) => onlyOthers(shape) ?? needs("learn")(shape) ?? needsOwnLoadBalancer(shape),
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const { service, target, own, theirs, by, seen } = await openTheirs(scene);
    // The node calls as an API server does that calls a webhook.
    for (const from of [own, first, second]) await expectAnswers(from, target, { by });
    const before = await counted(scene, service.clusterIP);
    await expectAnswers(theirs, target, { by, seen });
    const after = await counted(scene, service.clusterIP);
    if (after !== before) throw new Error(`its own pod's packets met rules of ours:\n${before}\nthen\n${after}`);
  },
};

export const excludedClientsTogether: Spec = {
  name: "excluded-clients in a mode that does not distinguish clients: the ClusterIP is left for all, the node port is served",
  suite: "multi-cni",
  about: ["endpoint-filter", "backend-ipvs"],
  byItself: true,
  unfit: (shape) =>
    onlyIn(["ipvs"], "this mode distinguishes clients")(shape) ?? needs("learn")(shape) ?? needsOwnLoadBalancer(shape),
  run: async (scene) => {
    const { cluster, family } = scene;
    const [first, second] = scene.nodes;
    const { service, target, own, theirs, by, seen } = await openTheirs(scene);
    await each(scene, (node) => requireLogged(node, (line) => line.includes(LIKE_CLUSTER_IP)));
    for (const { addresses } of scene.nodes) {
      const atNode = { to: addresses[family] ?? "", port: service.nodePort };
      for (const from of [own, cluster.outside]) await expectAnswers(from, atNode, { by });
    }
    for (const from of [own, first, second]) await expectUntouched(from, target);
    await expectNoTrace(scene, service.clusterIP);
    await expectAnswers(theirs, target, { by, seen });
  },
};

/** The rules of iptables that name an address, with their counters, on all nodes; none in a mode without iptables. */
async function counted({ cluster, family }: Scene, address: string): Promise<string> {
  const tool = `${PLAIN_TOOL[family]}-save`;
  const texts = await Promise.all(cluster.nodes.map(({ run }) => run([tool, "-c", "-t", "nat"])));
  const lines = texts.flatMap(({ stdout }) => stdout.split("\n").filter((line) => line.includes(` ${address}/`)));
  return lines.join("\n");
}

const rollout: Spec = {
  name: "a rollout to zero and back changes no owner, in either network",
  suite: "multi-cni",
  unfit: needsExcluded,
  run: async (scene) => {
    const [first] = scene.nodes;
    const { network, ours, theirs, caller, foreign, atOwn, atForeign } = await openOwners(scene);
    await Promise.all([ours.remove(), theirs.remove()]);
    await expectRefused(caller, atOwn);
    await expectUntouched(caller, atForeign);
    await expectNoTrace(scene, foreign.clusterIP);
    const [next] = await Promise.all([
      scene.pod({ node: first, app: "ours" }),
      scene.pod({ node: first, network, app: "theirs" }),
    ]);
    await expectAnswers(caller, atOwn, { by: [next] });
    await expectUntouched(caller, atForeign);
    await expectNoTrace(scene, foreign.clusterIP);
  },
};

const annotation: Spec = {
  name: "the ownership annotation takes a service over and gives it away",
  suite: "multi-cni",
  unfit: needsExcluded,
  run: async (scene) => {
    const { ours, theirs, caller, own, foreign, atOwn, atForeign } = await openOwners(scene);
    await own.annotate(OWNERSHIP, "foreign");
    await foreign.annotate(OWNERSHIP, "ours");
    await expectUntouched(caller, atOwn);
    await expectNoTrace(scene, own.clusterIP);
    await expectAnswers(caller, atForeign, { by: [theirs] });
    await own.annotate(OWNERSHIP, null);
    await foreign.annotate(OWNERSHIP, null);
    await expectAnswers(caller, atOwn, { by: [ours] });
    await expectUntouched(caller, atForeign);
    await expectNoTrace(scene, foreign.clusterIP);
  },
};

const moving: Spec = {
  name: "a service whose pods move to the other network changes its owner, and back",
  suite: "multi-cni",
  unfit: needsExcluded,
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const network = excludedNetwork(scene.cluster).name;
    const [theirs, caller] = await Promise.all([
      scene.pod({ node: second, network, app: "web" }),
      scene.pod({ node: first }),
    ]);
    const service = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    await expectForeign(scene, service.name);
    await expectUntouched(caller, target);
    const ours = await scene.pod({ node: second, app: "web" });
    await expectAnswers(caller, target, { by: [ours] });
    await theirs.remove();
    await expectAnswers(caller, target, { by: [ours] });
    await scene.pod({ node: first, network, app: "web" });
    await ours.remove();
    await expectUntouched(caller, target);
    await expectNoTrace(scene, service.clusterIP);
  },
};

const ownBalancer: Spec = {
  name: "the other network's load balancer serves its service, also while Fairlead restarts",
  suite: "multi-cni",
  byItself: true,
  unfit: needsOwnLoadBalancer,
  run: async (scene) => {
    const { cluster, family } = scene;
    const [first, second] = scene.nodes;
    const network = excludedNetwork(cluster).name;
    const [near, far, caller] = await Promise.all([
      scene.pod({ node: first, network, app: "theirs" }),
      scene.pod({ node: second, network, app: "theirs" }),
      scene.pod({ node: second, network }),
    ]);
    const service = await scene.service("theirs", { selector: { app: "theirs" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    const seen = caller.addresses[family] ?? "";
    await expectAnswers(caller, target, { by: [near, far], seen });
    await expectNoTrace(scene, service.clusterIP);
    const restarts = Promise.all(cluster.nodes.map(({ agent }) => agent.restart()));
    const during = await caller.send({ protocol: "TCP", ...target, count: 200, parallel: 2, timeoutMs: 15_000 });
    await restarts;
    const failed = during.filter(({ kind }) => kind !== "answer");
    if (failed.length > 0) throw new Error(`${failed.length} of 200 requests failed: ${JSON.stringify(failed[0])}`);
    await expectAnswers(caller, target, { by: [near, far], seen });
    await far.setReady(false);
    await expectAnswers(caller, target, { by: [near], seen });
  },
};

export const changes: readonly Spec[] = [rollout, annotation, moving, ownBalancer];
