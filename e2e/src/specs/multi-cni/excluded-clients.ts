import { each, restoreAgents } from "../every-node.ts";
import { expectAnswers } from "../expect.ts";
import { needs, notIn } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { excludedNetwork, needsOwnLoadBalancer } from "./networks.ts";
import { expectForeign } from "./untouched.ts";

const PORTS = [{ port: 80 }];

const onlyOthers = notIn(["ipvs"], "ipvs mode cannot tell clients apart at an address");

export const excludedClients: Spec = {
  name: "excluded-clients: nodes and our pods reach a service of the excluded network, whose own load balancer answers its pods",
  suite: "multi-cni",
  about: ["endpoint-filter", "backend-iptables", "backend-nftables", "backend-userspace"],
  alone: true,
  unfit: (shape) => onlyOthers(shape) ?? needs("learn")(shape) ?? needsOwnLoadBalancer(shape),
  run: async (scene) => {
    const { cluster, family } = scene;
    const [first, second] = scene.nodes;
    const network = excludedNetwork(cluster).name;
    restoreAgents(scene);
    await each(scene, ({ agent }) => agent.restart({ flags: ["--excluded-frontends=excluded-clients"] }));
    const [near, far, own, theirs] = await Promise.all([
      scene.pod({ node: first, network, app: "theirs" }),
      scene.pod({ node: second, network, app: "theirs" }),
      scene.pod({ node: first }),
      scene.pod({ node: first, network }),
    ]);
    const service = await scene.service("theirs", { selector: { app: "theirs" }, ports: PORTS });
    await expectForeign(scene, service.name);
    const target = { to: service.clusterIP, port: 80 };
    // The node calls as an API server does that calls a webhook.
    for (const from of [own, first, second]) await expectAnswers(from, target, { by: [near, far] });
    const before = await counted(scene, service.clusterIP);
    await expectAnswers(theirs, target, { by: [near, far], seen: theirs.addresses[family] ?? "" });
    const after = await counted(scene, service.clusterIP);
    if (after !== before) throw new Error(`its own pod's packets met rules of ours:\n${before}\nthen\n${after}`);
  },
};

/** The rules of iptables that name an address, with their counters, on all nodes; none in a mode without iptables. */
async function counted({ cluster, family }: Scene, address: string): Promise<string> {
  const tool = family === "IPv6" ? "ip6tables-save" : "iptables-save";
  const texts = await Promise.all(cluster.nodes.map(({ run }) => run([tool, "-c", "-t", "nat"])));
  const lines = texts.flatMap(({ stdout }) => stdout.split("\n").filter((line) => line.includes(` ${address}/`)));
  return lines.join("\n");
}
