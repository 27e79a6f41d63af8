import { modeNamed, servesLocalhost } from "@fairlead/lab/modes";
import type { Client, Cluster, Pod } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectRefused, type Target } from "../expect.ts";
import { nearAndFar, type Scene, type Spec } from "../spec.ts";

const PORTS = [{ port: 80, targetPort: 8080 }];

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

type Source = { readonly seen: string } | { readonly notSeen: string };

/** What endpoints see of a pod that calls a ClusterIP: its own address, or in some networks anything but that. */
export function sourceOf(scene: Scene, caller: Client): Source {
  const { network, family } = scene;
  return network.hidesCallers ? { notSeen: caller.addresses[family] ?? "" } : keptSource(scene, caller);
}

/**
 * What endpoints see of a client whose address is kept, which in userspace mode can be nobody's: the node asks for all.
 */
export function keptSource({ cluster, family }: Scene, caller: Client): Source {
  const own = caller.addresses[family] ?? "";
  return modeNamed(cluster.mode).keepsSource ? { seen: own } : { notSeen: own };
}

const ENDPOINT_PORTS = [{ port: 80 }];

const affinity: Spec = {
  name: "session affinity: a client stays with one endpoint",
  suite: "services",
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const [caller, ...webs] = await Promise.all([
      scene.pod({ node: first }),
      ...[first, first, second, second].map((node) => scene.pod({ node, app: "web" })),
    ]);
    const service = await scene.service("web", {
      sessionAffinity: "ClientIP",
      selector: { app: "web" },
      ports: ENDPOINT_PORTS,
    });
    const target = { to: service.clusterIP, port: 80 };
    await scene.until("one endpoint for all requests", async () => {
      const results = await caller.send({ protocol: "TCP", ...target, count: 24, parallel: 4, timeoutMs: 2_500 });
      const servers = new Set(results.map((result) => (result.kind === "answer" ? result.server : result.kind)));
      const [only = ""] = servers;
      return servers.size === 1 && webs.some(({ name }) => name === only) ? undefined : [...servers].join(", ");
    });
  },
};

const terminating: Spec = {
  name: "terminating endpoints: passed over while others are ready, used when there is nobody else",
  suite: "services",
  run: async (scene) => {
    const { near: staying, far: going, caller } = await nearAndFar(scene);
    const service = await scene.service("web", { selector: { app: "web" }, ports: ENDPOINT_PORTS });
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [staying, going] });
    await going.terminate();
    await expectAnswers(caller, target, { by: [staying] });
    await staying.terminate();
    await expectAnswers(caller, target, { by: [staying, going] });
    await Promise.all([staying.remove(), going.remove()]);
    await expectRefused(caller, target);
  },
};

const zones: Spec = {
  name: "trafficDistribution PreferSameZone: each zone uses its own endpoints, all where it has none",
  suite: "services",
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { near: here, far: there, caller: callerHere } = await nearAndFar(scene);
    const callerThere = await scene.pod({ node: second });
    const spec = { trafficDistribution: "PreferSameZone", selector: { app: "web" }, ports: ENDPOINT_PORTS };
    const service = await scene.service("web", spec);
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(callerHere, target, { by: [here] });
    await expectAnswers(callerThere, target, { by: [there] });
    await there.remove();
    await expectAnswers(callerThere, target, { by: [here] });
  },
};

const sameNode: Spec = {
  name: "trafficDistribution PreferSameNode: each node uses its own endpoint",
  suite: "services",
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { near: here, far: there, caller } = await nearAndFar(scene);
    const spec = { trafficDistribution: "PreferSameNode", selector: { app: "web" }, ports: ENDPOINT_PORTS };
    const service = await scene.service("web", spec);
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by: [here] });
    await expectAnswers(second, target, { by: [there] });
    await here.setReady(false);
    await expectAnswers(caller, target, { by: [there] });
  },
};

export const endpoints: readonly Spec[] = [affinity, terminating, zones, sameNode];

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
