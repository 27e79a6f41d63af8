import { modeNamed, servesLocalhost } from "@fairlead/lab/modes";
import type { Cluster, Pod } from "@fairlead/lab/provider/cluster";
import { expectAnswers, type Target } from "../expect.ts";
import { nearAndFar } from "../near-and-far.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { sourceOf } from "./caller.ts";

const PORTS = [{ port: 80, targetPort: 8080 }];

/** Pods keep their address, everybody else is masqueraded. */
async function askEveryone({ cluster, family }: Scene, target: Target, caller: Pod, by: readonly Pod[]): Promise<void> {
  await expectAnswers(caller, target, { by });
  for (const node of cluster.nodes) await expectAnswers(node, target, { by });
  await expectAnswers(cluster.outside, target, { by, ...masked(cluster, family) });
}

function masked({ outside }: Cluster, family: Scene["family"]) {
  const notSeen = outside.addresses[family];
  return notSeen === undefined ? {} : { notSeen };
}

const clusterIP: Spec = {
  name: "ClusterIP: pods, nodes and the outside reach endpoints of both nodes",
  suite: "services",
  run: async (scene) => {
    const { near, far, caller, by } = await nearAndFar(scene);
    const service = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const target = { to: service.clusterIP, port: 80 };
    await askEveryone(scene, target, caller, by);
    await expectAnswers(caller, target, { by, ...sourceOf(scene, caller) });
    await expectAnswers(far, target, { by });
    await expectAnswers(near, target, { by });
  },
};

const nodePort: Spec = {
  name: "NodePort: every node leads to endpoints of both nodes, for everybody",
  suite: "services",
  run: async (scene) => {
    const { cluster, family } = scene;
    const { caller, by } = await nearAndFar(scene);
    const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports: PORTS });
    for (const node of cluster.nodes) {
      await askEveryone(scene, { to: node.addresses[family] ?? "", port: service.nodePort }, caller, by);
    }
  },
};

const localhost: Spec = {
  name: "NodePort on 127.0.0.1 of each node",
  suite: "services",
  unfit: ({ mode }, family) =>
    servesLocalhost(modeNamed(mode)) && family === "IPv4"
      ? undefined
      : "only IPv4 has it, and only iptables and userspace mode",
  run: async (scene) => {
    const { by } = await nearAndFar(scene);
    const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports: PORTS });
    for (const node of scene.cluster.nodes) {
      await expectAnswers(node, { to: "127.0.0.1", port: service.nodePort }, { by });
    }
  },
};

const external: Spec = {
  name: "externalIPs and load balancer addresses of every node",
  suite: "services",
  run: async (scene) => {
    const { cluster, family } = scene;
    const { caller, by } = await nearAndFar(scene);
    const gates = cluster.nodes.map((node) => ({
      external: cluster.gateAddress(node, family),
      lb: cluster.gateAddress(node, family),
    }));
    const service = await scene.service("web", {
      type: "LoadBalancer",
      selector: { app: "web" },
      externalIPs: gates.map((gate) => gate.external),
      ports: PORTS,
    });
    await service.setIngress(gates.map(({ lb }) => lb));
    for (const to of gates.flatMap((gate) => [gate.external, gate.lb])) {
      await askEveryone(scene, { to, port: 80 }, caller, by);
    }
  },
};

const hairpin: Spec = {
  name: "hairpin: an endpoint reaches itself through its own service",
  suite: "services",
  run: async (scene) => {
    const [node] = scene.nodes;
    const own = await scene.pod({ node, app: "web" });
    const service = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
    const notSeen = own.addresses[scene.family] ?? "";
    await expectAnswers(own, { to: service.clusterIP, port: 80 }, { by: [own], notSeen });
  },
};

export const reach: readonly Spec[] = [clusterIP, nodePort, localhost, external, hairpin];
