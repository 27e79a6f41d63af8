/** Second instances alongside a node's first proxy: from an overlay, on local ports, and for secondary networks. */

import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { familyOf } from "@fairlead/base";
import { type AgentProcess, agentFile, startAgent } from "@fairlead/lab/agent";
import { type ApiObject, objectPath } from "@fairlead/lab/control-plane/api-client";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { modeNamed } from "@fairlead/lab/modes";
import type { Client, Cluster, ClusterNode, Instance, Pod, WholeKubernetes } from "@fairlead/lab/provider/cluster";
import { FAIRLEAD_IMAGE } from "@fairlead/lab/provider/kind/fairlead";
import {
  joinNode,
  leaveNode,
  openSecondary,
  type SecondaryNetwork,
  type SecondaryPlugin,
} from "@fairlead/lab/secondary";
import { parse } from "yaml";
import { expectAnswers, expectRefused } from "./expect.ts";
import { openStage, PORTS, startTraffic, type TrafficFlow, withoutFailure } from "./faults/stage.ts";
import { expectNoTrace } from "./multi-cni/untouched.ts";
import { lackingKubeProxy, needsKubelets, ROLLOUT_MS, removeProxy, whole, withKubeProxy } from "./operator.ts";
import { fairlead } from "./rollout/migrate.ts";
import { able, each, type Figures, needs, type Scene, type ServiceHandle, type Spec } from "./spec.ts";

const ROLES = new URL("../../../deploy/overlays/controller/", import.meta.url);
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fairlead-controller";

async function grantRights(scene: Scene): Promise<void> {
  const { api } = scene.cluster;
  for (const file of ["clusterrole", "clusterrolebinding", "role", "rolebinding"]) {
    const object: ApiObject = parse(await readFile(fileURLToPath(new URL(`${file}.yaml`, ROLES)), "utf8"));
    const user = { apiGroup: "rbac.authorization.k8s.io", kind: "User", name: USERS.controller.name };
    const bound = "subjects" in object ? { ...object, subjects: [user] } : object;
    await api.create(bound);
    scene.later(() => api.delete(objectPath(bound)));
  }
}

async function controllers(scene: Scene): Promise<() => AgentProcess> {
  const { apiServer } = scene.cluster;
  await grantRights(scene);
  const file = join(await scene.folder(), "kubeconfig");
  await writeFile(file, kubeconfig({ server: apiServer.url, token: USERS.controller.token }));
  const bundle = join(dirname(agentFile()), "controller.js");
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
  const ways = waysTo(scene, service, [caller, second]);
  await expectWays({ ways }, pods);
  await expectOnlySecond(scene, pods);
  return { network, start, leader, ways, pods, instances };
}

/** From each of them to the ClusterIP, and from the outside to the second node's port. */
function waysTo(
  { cluster, family, nodes: [, second] }: Scene,
  { clusterIP, nodePort }: ServiceHandle,
  inside: readonly Client[],
): readonly TrafficFlow[] {
  const atNode = { from: cluster.outside, to: second.addresses[family] ?? "", port: nodePort };
  return [...inside.map((from) => ({ from, to: clusterIP, port: 80 })), atNode];
}

async function expectWays({ ways }: Pick<Setup, "ways">, by: readonly Pod[]): Promise<void> {
  for (const way of ways) await expectAnswers(way.from, way, { by });
}

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

const COMMON = { about: ["agent", "backend-nftables"] } as const satisfies Partial<Spec>;
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

export const secondaryAlongsideKubeProxy: Spec = {
  ...COMMON,
  name: "alongside kube-proxy a Service leads to pods' second interfaces: the same under load",
  suite: "swap",
  unfit: (shape) => unfit(shape) ?? lackingKubeProxy(shape),
  run: (scene) => withKubeProxy(scene, async () => underLoad(scene, await open(scene, "macvlan"))),
};

const TRAFFIC_MS = 15 * 60_000;

export const instanceOnLocalPorts: Spec = {
  name: "a second instance on local ports serves what is labeled for it and writes no rule: a label that changes under load",
  suite: "multi-cni",
  about: ["agent", "backend-userspace"],
  eachFamily: false,
  byItself: true,
  unfit: needs("local-instance"),
  run: async (scene) => {
    const { cluster } = scene;
    const [first] = scene.nodes;
    const { caller, by, ways } = await openStage(scene);
    const own = await openService(scene, "own", first);
    const moving = await openService(scene, "moving", first);
    for (const { atClusterIP } of [own, moving]) await expectAnswers(caller, atClusterIP, { by });
    const traffic = startTraffic(ways, scene.later, TRAFFIC_MS);
    const before = await rulesOf(first, cluster.mode);
    const instance = await able(first.startLocalInstance)(NAME);
    scene.later(instance.remove);
    if ((await rulesOf(first, cluster.mode)) !== before) throw new Error(`${first.name} has other rules than before`);
    for (const { service, atLocalPort } of [own, moving]) {
      await giveTo(service, NAME);
      for (const from of [caller, first]) await expectAnswers(from, atLocalPort, { by });
      await expectNoTrace(scene, service.clusterIP);
    }
    await giveTo(moving.service, null);
    await expectAnswers(caller, moving.atClusterIP, { by });
    await expectRefused(caller, moving.atLocalPort);
    await instance.remove();
    await expectRefused(caller, own.atLocalPort);
    return withoutFailure(await traffic.stop());
  },
};

export const instanceFromOverlay: Spec = {
  name: "a second instance from its overlay serves what is labeled for it alongside the first proxy; removed, it leaves nothing",
  suite: "rollout",
  about: ["agent", "backend-nftables"],
  eachFamily: false,
  unfit: needsKubelets,
  run: async (scene, cluster) => {
    const [first] = scene.nodes;
    const kubernetes = whole(cluster);
    const { caller, by, ways } = await openStage(scene);
    const service = await scene.service("moving", { type: "NodePort", selector: { app: "web" }, ports: PORTS });
    const moving = { ways: waysTo(scene, service, [caller, first]) };
    const expectServed = () => expectWays(moving, by);
    await expectServed();
    const traffic = startTraffic(ways, scene.later, TRAFFIC_MS);
    scene.later(() => removeProxy(kubernetes, "fairlead-edge"));
    await kubernetes.addInstance();
    await giveTo(service, NAME);
    // By the label the first proxy has given it up: what answers from now on is the instance.
    await expectNoTrace({ cluster: { nodes: cluster.nodes.map(withoutInstance) } }, service.clusterIP);
    await expectServed();
    await scene.until("an instance on every node", () => notServing(cluster));
    await removeProxy(kubernetes, "fairlead-edge");
    await expectServed();
    for (const { name } of cluster.nodes) await cleanUp(kubernetes, scene.namespace, name);
    await expectNoTrace(scene, service.clusterIP);
    await giveTo(service, null);
    await expectServed();
    return withoutFailure(await traffic.stop());
  },
};

/** Of a node all but what the instance has in the kernel. */
function withoutInstance({ run }: ClusterNode): Pick<ClusterNode, "run"> {
  const own = new RegExp(`^table \\S+ fairlead-${NAME} \\{$[^]*?^\\}$`, "gm");
  return {
    run: async (argv) => {
      const { stdout, ...rest } = await run(argv);
      return { ...rest, stdout: stdout.replace(own, "") };
    },
  };
}

const STATUS_MS = 120_000;

async function notServing(cluster: Cluster): Promise<string | undefined> {
  const args = ["status", `--service-proxy-name=${NAME}`, "--output=json"] as const;
  const { out } = await fairlead(cluster, args, { timeoutMs: STATUS_MS });
  const rows: readonly { readonly node: string; readonly healthy?: boolean }[] = JSON.parse(out);
  const serve = rows.filter(({ healthy }) => healthy === true).map(({ node }) => node);
  return cluster.nodes.every(({ name }) => serve.includes(name)) ? undefined : out;
}

/** As docs/install.md has it, of an instance. */
async function cleanUp({ kubectl }: WholeKubernetes, namespace: string, node: string): Promise<void> {
  const program = ["/usr/local/bin/fairlead-proxy", "--cleanup", `--service-proxy-name=${NAME}`];
  const here = `--namespace=${namespace}`;
  const how = ["--profile=sysadmin", `--image=${FAIRLEAD_IMAGE}`];
  const { stdout } = await kubectl(["debug", here, `node/${node}`, ...how, "--", ...program]);
  const pod = /node-debugger-\S+/.exec(stdout)?.[0];
  if (pod === undefined) throw new Error(`kubectl debug made no pod that it named: ${stdout}`);
  const ended = ["--for=jsonpath={.status.phase}=Succeeded", `--timeout=${ROLLOUT_MS / 1000 - 10}s`];
  await kubectl(["wait", here, `pod/${pod}`, ...ended], { timeoutMs: ROLLOUT_MS });
}

export const NAME = "edge";

function giveTo(service: ServiceHandle, name: string | null): Promise<void> {
  return service.patch({ metadata: { labels: { "service.kubernetes.io/service-proxy-name": name } } });
}

const LOCAL_PORTS = { own: 18_080, moving: 18_081 } as const;

/** A service with the same endpoints as the stage's, and where it is served once the instance has it. */
async function openService(scene: Scene, name: keyof typeof LOCAL_PORTS, { addresses }: ClusterNode) {
  const port = LOCAL_PORTS[name];
  const annotations = { "fairlead.dev/local-port": String(port) };
  const service = await scene.service(name, { selector: { app: "web" }, ports: PORTS }, annotations);
  return {
    service,
    atClusterIP: { to: service.clusterIP, port: 80 },
    atLocalPort: { to: addresses[scene.family] ?? "", port },
  };
}

async function rulesOf({ run }: ClusterNode, mode: string): Promise<string> {
  const { listings, linesOf } = modeNamed(mode).rules;
  const texts = await Promise.all(listings.map((argv) => run(argv)));
  return texts.flatMap(({ stdout }) => linesOf(stdout)).join("\n");
}
