import { modeNamed } from "@fairlead/lab/modes";
import type { Client, Cluster, Pod } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectBytes, expectRefused, type Target } from "../expect.ts";
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
  name: "NodePort: every node leads to endpoints of both nodes, for all clients",
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

export const reach: readonly Spec[] = [clusterIP, nodePort, external, hairpin];

type Source = { readonly seen: string } | { readonly notSeen: string };

/** What endpoints see of a pod that calls a ClusterIP: its own address, or in some networks anything but that. */
function sourceOf(scene: Scene, caller: Client): Source {
  const { network, family } = scene;
  return network.hidesCallers ? { notSeen: caller.addresses[family] ?? "" } : keptSource(scene, caller);
}

/**
 * What endpoints see of a client whose address is kept, which in userspace mode no client's is: the node asks for all.
 */
export function keptSource({ cluster, family }: Scene, caller: Client): Source {
  const own = caller.addresses[family] ?? "";
  return modeNamed(cluster.mode).keepsSource ? { seen: own } : { notSeen: own };
}

const ENDPOINT_PORTS = [{ port: 80 }];

const terminating: Spec = {
  name: "terminating endpoints: passed over while others are ready, used when there is no other",
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
  name: "trafficDistribution PreferSameZone: each zone uses its own endpoints, and a zone without endpoints uses all",
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

export const endpoints: readonly Spec[] = [terminating, zones, sameNode];

/** Pods keep their address, other clients are masqueraded. */
async function askEveryone({ cluster, family }: Scene, target: Target, caller: Pod, by: readonly Pod[]): Promise<void> {
  await expectAnswers(caller, target, { by });
  for (const node of cluster.nodes) await expectAnswers(node, target, { by });
  await expectAnswers(cluster.outside, target, { by, ...masked(cluster, family) });
}

function masked({ outside }: Cluster, family: Scene["family"]) {
  const notSeen = outside.addresses[family];
  return notSeen === undefined ? {} : { notSeen };
}

const DNS_PORTS = [
  { name: "dns", port: 53, targetPort: 53, protocol: "UDP" },
  { name: "dns-tcp", port: 53, targetPort: 80, protocol: "TCP" },
];

const bothProtocols: Spec = {
  name: "UDP and TCP at the same port of one service",
  suite: "services",
  run: async (scene) => {
    const [, second] = scene.nodes;
    const { caller, by } = await nearAndFar(scene, "dns");
    const service = await scene.service("dns", { selector: { app: "dns" }, ports: DNS_PORTS });
    const wanted = { by, ...sourceOf(scene, caller) };
    await expectAnswers(caller, { to: service.clusterIP, port: 53, protocol: "UDP" }, wanted);
    await expectAnswers(caller, { to: service.clusterIP, port: 53 }, wanted);
    await expectAnswers(second, { to: service.clusterIP, port: 53, protocol: "UDP" }, { by });
  },
};

const repointing: Spec = {
  name: "UDP: a busy flow is led to the new endpoint when its own is gone",
  suite: "services",
  about: ["core", "kernel"],
  run: async (scene) => {
    const [first, second] = scene.nodes;
    const [old, caller] = await Promise.all([scene.pod({ node: second, app: "dns" }), scene.pod({ node: first })]);
    const service = await scene.service("dns", { selector: { app: "dns" }, ports: DNS_PORTS });
    const target = { to: service.clusterIP, port: 53, protocol: "UDP" } as const;
    await expectAnswers(caller, target, { by: [old] });
    await flowGoesTo(scene, caller, service.clusterIP, old);
    const next = await scene.pod({ node: first, app: "dns" });
    // The old one still runs: only the proxy can lead the flow away from it.
    await old.setReady(false);
    await flowGoesTo(scene, caller, service.clusterIP, next);
  },
};

const MEBIBYTES = 8;

const large: Spec = {
  name: `${MEBIBYTES} MiB through a ClusterIP and a NodePort, from a pod, a node and the outside`,
  suite: "services",
  run: async (scene) => {
    const { cluster, family } = scene;
    const [first, second] = scene.nodes;
    const [far, caller] = await Promise.all([scene.pod({ node: second, app: "web" }), scene.pod({ node: first })]);
    const service = await scene.service("web", { type: "NodePort", selector: { app: "web" }, ports: [{ port: 80 }] });
    const atNode = { to: first.addresses[family] ?? "", port: service.nodePort };
    const atService = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, atService, { by: [far] });
    await expectAnswers(cluster.outside, atNode, { by: [far] });
    const ways = [
      [caller, atService],
      [first, atService],
      [cluster.outside, atNode],
    ] as const;
    for (const [from, { to, port }] of ways) await expectBytes(from, { to, port }, MEBIBYTES << 20);
  },
};

const dualStack: Spec = {
  name: "dual stack: one service at an address of each family",
  suite: "services",
  eachFamily: false,
  unfit: ({ families }) => (families.length === 2 ? undefined : "the cluster has one IP family"),
  run: async (scene) => {
    const { caller, by } = await nearAndFar(scene);
    const spec = { ipFamilyPolicy: "RequireDualStack", selector: { app: "web" }, ports: [{ port: 80 }] };
    const { clusterIPs } = await scene.service("web", spec);
    if (clusterIPs.length !== 2) throw new Error(`wanted two ClusterIPs, came ${clusterIPs.join(", ")}`);
    for (const to of clusterIPs) await expectAnswers(caller, { to, port: 80 }, { by });
  },
};

export const protocols: readonly Spec[] = [bothProtocols, repointing, large, dualStack];

/** Datagrams from one port are one flow to connection tracking: it goes where the first of them went. */
function flowGoesTo(scene: Scene, caller: Pod, to: string, wanted: Pod): Promise<void> {
  const probe = { protocol: "UDP", to, port: 53, sourcePort: 5353, count: 1, parallel: 1, timeoutMs: 500 } as const;
  return scene.until(`the flow at ${wanted.name}`, async () => {
    const [result] = await caller.send(probe);
    const came = result?.kind === "answer" ? result.server : (result?.kind ?? "nothing");
    return came === wanted.name ? undefined : came;
  });
}
