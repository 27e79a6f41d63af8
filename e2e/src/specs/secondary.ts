import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { familyOf } from "@fairlead/base";
import { type AgentProcess, agentFile, startAgent } from "@fairlead/lab/agent";
import { type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import type { ClusterNode, Instance, Pod } from "@fairlead/lab/provider/cluster";
import {
  joinNode,
  leaveNode,
  openSecondary,
  type SecondaryNetwork,
  type SecondaryPlugin,
} from "@fairlead/lab/secondary";
import { parse } from "yaml";
import { expectAnswers } from "./expect.ts";
import { PORTS, startTraffic, type TrafficFlow, withoutFailure } from "./faults/stage.ts";
import { giveTo, NAME } from "./instances.ts";
import { able, each, type Figures, needs, type Scene, type Spec } from "./spec.ts";

const ROLES = new URL("../../../deploy/overlays/slices/", import.meta.url);
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fairlead-slices";

/** The rights of the manifests, and no others. */
async function grantRights(scene: Scene): Promise<void> {
  const { api } = scene.cluster;
  for (const file of ["clusterrole", "clusterrolebinding", "role", "rolebinding"]) {
    const object: ApiObject = parse(await readFile(fileURLToPath(new URL(`${file}.yaml`, ROLES)), "utf8"));
    const user = { apiGroup: "rbac.authorization.k8s.io", kind: "User", name: USERS.slices.name };
    const bound = "subjects" in object ? { ...object, subjects: [user] } : object;
    await api.create(bound);
    scene.later(() => api.delete(objectPath(bound)));
  }
}

/** Starts a controller each time that it is called; all end with the spec. */
async function controllers(scene: Scene): Promise<() => AgentProcess> {
  const { apiServer } = scene.cluster;
  await grantRights(scene);
  const folder = await mkdtemp(join(tmpdir(), "fairlead-slices-"));
  scene.later(() => rm(folder, { recursive: true }));
  const file = join(folder, "kubeconfig");
  await writeFile(file, kubeconfig({ server: apiServer.url, token: USERS.slices.token }));
  const bundle = join(dirname(agentFile()), "slices.js");
  let port = 10_360;
  return () => {
    port += 1;
    const flags = [`--kubeconfig=${file}`, `--service-proxy-name=${NAME}`, `--metrics-bind-address=127.0.0.1:${port}`];
    const started = startAgent(able(apiServer.namespace), { bundle, flags: [...flags, "-v=2"] });
    scene.later(async () => void (await started.kill()));
    return started;
  };
}

async function openNetwork(scene: Scene, plugin: SecondaryPlugin): Promise<SecondaryNetwork> {
  const { nodes, families } = scene.cluster;
  const network = await openSecondary(`${scene.namespace}/storage`, plugin, families);
  scene.later(network.dispose);
  for (const [at, node] of nodes.entries()) {
    await joinNode(plugin, nodes, at, families);
    scene.later(() => leaveNode(node, plugin));
  }
  return network;
}

interface Endpoint extends Pod {
  /** Of its interface on the network. */
  readonly seconds: readonly string[];
}

async function endpoint({ pod: start }: Scene, network: SecondaryNetwork, node: ClusterNode): Promise<Endpoint> {
  const pod = await start({ node, app: "web", ready: false });
  const seconds = await able(pod.join)(network);
  await pod.setReady(true);
  return { ...pod, seconds };
}

/** The instances lead to addresses on the network, and to none of the pods' first interfaces. */
async function expectOnlySecond({ cluster, family, until }: Scene, pods: readonly Endpoint[]): Promise<void> {
  const firsts = pods.flatMap(({ addresses }) => Object.values(addresses));
  const wanted = pods.flatMap(({ seconds }) => seconds.filter((address) => familyOf(address) === family));
  for (const { name, run } of cluster.nodes) {
    await until(`${name} to lead to the second interfaces only`, async () => {
      const { stdout } = await run(["nft", "list", "ruleset"]);
      const own = stdout.split(/^(?=table )/m).filter((table) => table.includes(` fairlead-${NAME} `));
      const isThere = (address: string) => own.some((table) => table.includes(` ${address} `));
      const [wrong, missing] = [firsts.filter(isThere), wanted.filter((address) => !isThere(address))];
      if (wrong.length === 0 && missing.length === 0) return undefined;
      return `of the first interfaces it has ${wrong.join(", ")}; it lacks ${missing.join(", ")}`;
    });
  }
}

async function holder({ cluster: { api } }: Scene): Promise<string> {
  const lease = (await api.get(LEASE).catch(() => ({}))) as { readonly spec?: { readonly holderIdentity?: string } };
  return lease.spec?.holderIdentity ?? "";
}

interface Setup {
  readonly network: SecondaryNetwork;
  readonly start: () => AgentProcess;
  readonly leader: AgentProcess;
  readonly ways: readonly TrafficFlow[];
  readonly pods: readonly [Endpoint, Endpoint];
  readonly instances: readonly Instance[];
}

async function open(scene: Scene, plugin: SecondaryPlugin): Promise<Setup> {
  const { cluster, family } = scene;
  const [first, second] = scene.nodes;
  const network = await openNetwork(scene, plugin);
  const start = await controllers(scene);
  const instances: Instance[] = [];
  scene.later(() => Promise.all(instances.map((one) => one.remove())).then(() => {}));
  await each(scene, async (node) => {
    const flags = ["--service-network", `--cluster-cidr=${network.cidrs.join(",")}`];
    instances.push(await able(node.startInstance)(NAME, ...flags));
  });
  const leader = start();
  await scene.until("a leader", async () => ((await holder(scene)) === "" ? leader.log() : undefined));
  const pods = [await endpoint(scene, network, first), await endpoint(scene, network, second)] as const;
  const caller = await scene.pod({ node: first });
  const spec = { type: "NodePort", selector: { app: "web" }, ports: PORTS };
  const service = await scene.service("web", spec, { "k8s.v1.cni.cncf.io/service-network": "storage" });
  await giveTo(service, NAME);
  const atNode = { to: second.addresses[family] ?? "", port: service.nodePort };
  const atClusterIP = { to: service.clusterIP, port: 80 };
  const ways = [
    { from: caller, ...atClusterIP },
    { from: second, ...atClusterIP },
    { from: cluster.outside, ...atNode },
  ];
  for (const way of ways) await expectAnswers(way.from, way, { by: pods });
  await expectOnlySecond(scene, pods);
  return { network, start, leader, ways, pods, instances };
}

async function expectWays({ ways }: Setup, by: readonly Pod[]): Promise<void> {
  for (const way of ways) await expectAnswers(way.from, way, { by });
}

/** Endpoints, controller and agents change under load. */
async function underLoad(scene: Scene, setup: Setup): Promise<Figures> {
  const [first] = scene.nodes;
  const { network, start, leader, ways, pods, instances } = setup;
  const [old, stays] = pods;
  const traffic = startTraffic(ways, scene.later, 600_000);
  const fresh = await endpoint(scene, network, first);
  await expectWays(setup, [old, stays, fresh]);
  await old.setReady(false);
  await expectWays(setup, [stays, fresh]);
  await each(scene, ({ agent }) => agent.restart());
  for (const instance of instances) await instance.restart();
  const before = await holder(scene);
  const next = start();
  // Paused for longer than the lease lasts: it must not write when it goes on.
  process.kill(leader.pid, "SIGSTOP");
  await scene.until("another leader", async () => ((await holder(scene)) === before ? next.log() : undefined));
  await old.setReady(true);
  await expectWays(setup, [old, stays, fresh]);
  process.kill(leader.pid, "SIGCONT");
  await fresh.setReady(false);
  await expectWays(setup, [old, stays]);
  await next.stop();
  await scene.until("the first one to lead again", async () => {
    return (await holder(scene)) === before ? undefined : leader.log();
  });
  const seen = await traffic.stop();
  await expectOnlySecond(scene, [old, stays]);
  return withoutFailure(seen);
}

const COMMON = { about: ["agent", "backend-nftables"], alone: true } as const satisfies Partial<Spec>;
const unfit = needs("secondary-network", "CNI's reference plugins, which Go builds");

export const secondaryNetwork: Spec = {
  ...COMMON,
  name: "a Service leads to pods' second interfaces: ClusterIP and node port, a rolling update, a paused leader, restarted agents",
  suite: "faults",
  unfit,
  run: async (scene) => underLoad(scene, await open(scene, "macvlan")),
};

export const secondaryBridge: Spec = {
  ...COMMON,
  name: "a Service leads to pods' second interfaces on a bridge of each node: the same under load",
  suite: "faults",
  unfit,
  run: async (scene) => underLoad(scene, await open(scene, "bridge")),
};

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

export const secondaryBesideKubeProxy: Spec = {
  ...COMMON,
  name: "alongside kube-proxy a Service leads to pods' second interfaces: the same under load",
  suite: "swap",
  unfit: (shape) =>
    unfit(shape) ?? (kubeProxy === "" ? "needs kube-proxy's program in FAIRLEAD_KUBE_PROXY" : undefined),
  run: async (scene) => {
    const { mode } = scene.cluster;
    scene.later(() => each(scene, ({ agent }) => able(agent.swap)({ mode })));
    await each(scene, ({ agent }) => able(agent.swap)({ mode, kubeProxy }));
    return underLoad(scene, await open(scene, "macvlan"));
  },
};
