import type { Pod } from "@fairlead/lab/provider/cluster";
import { expectAnswers } from "../expect.ts";
import { expectBytes } from "../expect-bytes.ts";
import { nearAndFar } from "../near-and-far.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { sourceOf } from "./caller.ts";

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

/** Datagrams from one port are one flow to connection tracking: it goes where the first of them went. */
function flowGoesTo(scene: Scene, caller: Pod, to: string, wanted: Pod): Promise<void> {
  const probe = { protocol: "UDP", to, port: 53, sourcePort: 5353, count: 1, parallel: 1, timeoutMs: 500 } as const;
  return scene.until(`the flow at ${wanted.name}`, async () => {
    const [result] = await caller.send(probe);
    const came = result?.kind === "answer" ? result.server : (result?.kind ?? "nothing");
    return came === wanted.name ? undefined : came;
  });
}

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
