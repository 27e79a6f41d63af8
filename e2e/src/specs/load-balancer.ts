/** A load balancer of others in front of the nodes: MetalLB in layer-2 mode, whose addresses move between nodes. */

import { itemsOf, textAt, valueAt } from "@fairlead/base";
import type { Cluster, ClusterNode } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectUntouched, until } from "./expect.ts";
import { startAsking } from "./faults/node-gone.ts";
import { needsKubelets, whole } from "./operator.ts";
import { keptSource } from "./services/reach.ts";
import { type Figures, nearAndFar, type Scene, type Spec } from "./spec.ts";

const common = { suite: "load-balancer", unfit: needsKubelets } as const;

export const loadBalancer: readonly Spec[] = [
  {
    ...common,
    name: "MetalLB: its addresses lead clients outside, pods and nodes to both external policies",
    run: reach,
  },
  { ...common, name: "MetalLB: two Services share an address, and one of them goes", run: shared },
  { ...common, name: "MetalLB leaves a loadBalancerClass to another controller, with each ipMode", run: otherClass },
  { ...common, name: "MetalLB: a node goes away, and the address moves to another one", run: moves },
];

const PORTS = [{ port: 80 }];

async function reach(scene: Scene): Promise<void> {
  const { cluster, nodes } = scene;
  const { near, far, caller, by } = await nearAndFar(scene);
  const atAll = await balanced(scene, "all");
  for (const from of [cluster.outside, caller, ...nodes]) await expectAnswers(from, atAll, { by });
  // A node without endpoints does not announce the address.
  await near.setReady(false);
  const atLocal = await balanced(scene, "local", { externalTrafficPolicy: "Local" });
  const kept = keptSource(scene, cluster.outside);
  await expectAnswers(cluster.outside, atLocal, { by: [far], ...kept });
  for (const from of [caller, ...nodes]) await expectAnswers(from, atLocal, { by: [far] });
  await near.setReady(true);
  await far.setReady(false);
  await expectAnswers(cluster.outside, { ...atLocal, withinMs: MOVED_MS }, { by: [near], ...kept });
  await expectAnswers(cluster.outside, atAll, { by: [near] });
}

async function shared(scene: Scene): Promise<void> {
  const { cluster } = scene;
  const [first, second] = scene.nodes;
  const [web, other] = await Promise.all([
    scene.pod({ node: first, app: "web" }),
    scene.pod({ node: second, app: "other" }),
  ]);
  const share = { "metallb.io/allow-shared-ip": "both" };
  const atWeb = await balanced(scene, "web", {}, share);
  const alike = { selector: { app: "other" }, ports: [{ port: 8080 }] };
  const atOther = await balanced(scene, "other", alike, { ...share, "metallb.io/loadBalancerIPs": atWeb.to });
  if (atOther.to !== atWeb.to) throw new Error(`wanted one address; came ${atWeb.to} and ${atOther.to}`);
  await expectAnswers(cluster.outside, atWeb, { by: [web] });
  await expectAnswers(cluster.outside, { ...atOther, port: 8080 }, { by: [other] });
  await cluster.api.delete(`/api/v1/namespaces/${scene.namespace}/services/web`);
  await expectAnswers(cluster.outside, { ...atOther, port: 8080 }, { by: [other] });
}

async function otherClass(scene: Scene): Promise<void> {
  const { cluster, family, nodes } = scene;
  const [first] = nodes;
  const { caller, by } = await nearAndFar(scene);
  const spec = { type: "LoadBalancer", loadBalancerClass: "example.com/other", selector: { app: "web" }, ports: PORTS };
  await scene.service("classed", spec);
  // What comes later has an address: the one before it has been looked at.
  await balanced(scene, "later");
  const path = `/api/v1/namespaces/${scene.namespace}/services/classed`;
  const given = itemsOf(valueAt(await cluster.api.get(path), "status", "loadBalancer", "ingress"));
  if (given.length > 0) throw new Error(`wanted no address of MetalLB; came ${JSON.stringify(given)}`);
  const ip = cluster.gateAddress(first, family);
  const give = (ipMode: string) =>
    cluster.api.patch(`${path}/status`, { status: { loadBalancer: { ingress: [{ ip, ipMode }] } } });
  await give("VIP");
  for (const from of [cluster.outside, caller]) await expectAnswers(from, { to: ip, port: 80 }, { by });
  await give("Proxy");
  await expectUntouched(caller, { to: ip, port: 80 });
}

/** Speakers notice within seconds that one of them is silent, and a busy machine later. */
const MOVED_MS = 120_000;

async function moves(scene: Scene): Promise<Figures> {
  const { cluster } = scene;
  const { outside } = cluster;
  const { near, far, by } = await nearAndFar(scene);
  const target = await balanced(scene, "web");
  await expectAnswers(outside, target, { by });
  const dies = await announcer(scene, "web");
  const [gone, stays] = near.node.name === dies.name ? [near, far] : [far, near];
  await gone.setReady(false);
  await expectAnswers(outside, target, { by: [stays] });
  const traffic = startAsking(outside, target);
  scene.later(async () => void (await traffic.stop()));
  await unplug(scene, dies);
  await scene.until("requests to be lost", async () => (traffic.lost().length > 0 ? undefined : "none"));
  await expectAnswers(outside, { ...target, withinMs: MOVED_MS }, { by: [stays] });
  await traffic.stop();
  const lost = traffic.lost();
  const since = Math.min(...lost.map(({ at, ms }) => at - ms));
  const last = Math.max(...lost.map(({ at, ms }) => at - ms));
  return { lost: String(lost.length), "until the address has moved": `${Math.round((last - since) / 100) / 10} s` };
}

/** A Service of type LoadBalancer, and where it is once MetalLB has given it an address. */
async function balanced(scene: Scene, name: string, spec = {}, annotations: Readonly<Record<string, string>> = {}) {
  const { cluster, namespace } = scene;
  await whole(cluster).addLoadBalancer();
  const wanted = { type: "LoadBalancer", selector: { app: "web" }, ports: PORTS, ...spec };
  await scene.service(name, wanted, annotations);
  const found: string[] = [];
  await scene.until(`an address for ${name}`, async () => {
    const object = await cluster.api.get(`/api/v1/namespaces/${namespace}/services/${name}`);
    const [first] = itemsOf(valueAt(object, "status", "loadBalancer", "ingress"));
    found.push(textAt(first, "ip") ?? "");
    return found.at(-1) === "" ? "none" : undefined;
  });
  const to = found.at(-1) ?? "";
  // Another node may have answered for it for the Service that had it before.
  await cluster.apiServer.run(["ip", "neigh", "flush", "to", to]);
  return { to, port: 80 };
}

const STATUSES = "/apis/metallb.io/v1beta1/namespaces/metallb-system/servicel2statuses";

/** The node that answers for a Service's address. */
async function announcer({ cluster, namespace }: Scene, service: string): Promise<ClusterNode> {
  const names: (string | undefined)[] = [];
  await until(`a node that announces ${service}`, async () => {
    const all = itemsOf(valueAt(await cluster.api.get(STATUSES), "items")).map((one) => valueAt(one, "status"));
    const own = all.find(
      (one) => textAt(one, "serviceName") === service && textAt(one, "serviceNamespace") === namespace,
    );
    names.push(textAt(own, "node"));
    return names.at(-1) === undefined ? JSON.stringify(all) : undefined;
  });
  const node = cluster.nodes.find(({ name }) => name === names.at(-1));
  if (node === undefined) throw new Error(`${names.at(-1)} is not a node of this cluster`);
  return node;
}

/** The bridge hands nothing on from or to the node until the spec is over; the node itself keeps all it has. */
async function unplug({ cluster, later }: Scene, { run }: ClusterNode): Promise<void> {
  const [eth0] = JSON.parse((await run(["ip", "-j", "link", "show", "dev", "eth0"])).stdout);
  const port = await bridgePort(cluster, Number(valueAt(eth0, "link_index")));
  const set = (state: "0" | "3") => cluster.apiServer.run(["bridge", "link", "set", "dev", port, "state", state]);
  later(async () => void (await set("3")));
  await set("0");
}

async function bridgePort({ apiServer }: Cluster, index: number): Promise<string> {
  const ports: readonly unknown[] = JSON.parse((await apiServer.run(["ip", "-j", "link", "show"])).stdout);
  const name = textAt(
    ports.find((one) => valueAt(one, "ifindex") === index),
    "ifname",
  );
  if (name === undefined) throw new Error(`the machine has no link ${index}`);
  return name;
}
