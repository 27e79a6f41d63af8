import { expectAnswers, expectUntouched, requireLogged } from "../expect.ts";
import { each, needs, notIn, onlyIn, restoreAgents, type Scene, type Spec } from "../spec.ts";
import { excludedNetwork, expectForeign, expectNoTrace, needsOwnLoadBalancer } from "./untouched.ts";

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
  alone: true,
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
  name: "excluded-clients in a mode that cannot tell clients apart: the ClusterIP is left for all, the node port is served",
  suite: "multi-cni",
  about: ["endpoint-filter", "backend-ipvs"],
  alone: true,
  unfit: (shape) =>
    onlyIn(["ipvs"], "this mode tells clients apart")(shape) ?? needs("learn")(shape) ?? needsOwnLoadBalancer(shape),
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
  const tool = family === "IPv6" ? "ip6tables-save" : "iptables-save";
  const texts = await Promise.all(cluster.nodes.map(({ run }) => run([tool, "-c", "-t", "nat"])));
  const lines = texts.flatMap(({ stdout }) => stdout.split("\n").filter((line) => line.includes(` ${address}/`)));
  return lines.join("\n");
}
