/** Second instances alongside a node's first proxy. */

import { modeNamed } from "@fairlead/lab/modes";
import type { ClusterNode, ClusterShape, Removable } from "@fairlead/lab/provider/cluster";
import { expectAnswers, expectRefused } from "./expect.ts";
import { openStage, PORTS, startTraffic, type TrafficFlow, type TrafficSeen, withoutFailure } from "./faults/stage.ts";
import { expectNoTrace } from "./multi-cni/untouched.ts";
import { able, each, type Figures, needs, type Scene, type ServiceHandle, type Spec } from "./spec.ts";

const COMMON = { eachFamily: false, alone: true } as const;

export const instanceBesideFairlead: Spec = {
  ...COMMON,
  name: "a second instance serves what is labeled for it: a label that changes under load, and each one's clean-up",
  suite: "multi-cni",
  about: ["agent", "backend-nftables"],
  unfit: needs("instance"),
  run: async (scene) => {
    scene.later(() => each(scene, ({ agent }) => agent.restart()));
    return beside(scene);
  },
};

const { FAIRLEAD_KUBE_PROXY: kubeProxy = "" } = process.env;

export const instanceBesideKubeProxy: Spec = {
  ...COMMON,
  name: "Fairlead as second instance beside kube-proxy: a label that changes under load, and each one's clean-up",
  suite: "swap",
  about: ["agent", "backend-nftables"],
  unfit: (shape: ClusterShape) =>
    needs("instance")(shape) ?? (kubeProxy === "" ? "needs kube-proxy's program in FAIRLEAD_KUBE_PROXY" : undefined),
  run: async (scene) => {
    const { mode } = scene.cluster;
    scene.later(() => each(scene, ({ agent }) => able(agent.swap)({ mode })));
    await each(scene, ({ agent }) => able(agent.swap)({ mode, kubeProxy }));
    return beside(scene);
  },
};

const TRAFFIC_MS = 15 * 60_000;

export const instanceOnLocalPorts: Spec = {
  name: "a second instance on local ports serves what is labeled for it and writes no rule: a label that changes under load",
  suite: "multi-cni",
  about: ["agent", "backend-userspace"],
  eachFamily: false,
  alone: true,
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

/** The service proxy name of the instances. */
export const NAME = "edge";

/** Gives a service to the named instance, or back to the first proxy. */
export function giveTo(service: ServiceHandle, name: string | null): Promise<void> {
  return service.patch({ metadata: { labels: { "service.kubernetes.io/service-proxy-name": name } } });
}

/** The longest time without an answer of a service that changes hands, also on a busy machine. */
const HANDED_OVER_MS = 30_000;

async function openServices(scene: Scene) {
  const { cluster } = scene;
  const stage = await openStage(scene);
  const spec = { type: "NodePort", selector: { app: "web" }, ports: PORTS };
  const [own, moving] = [await scene.service("own", spec), await scene.service("moving", spec)];
  const instances = new Map<ClusterNode, Removable>();
  const start = () => each(scene, async (node) => void instances.set(node, await able(node.startInstance)(NAME)));
  const remove = () => each(scene, async (node) => void (await instances.get(node)?.remove()));
  scene.later(remove);
  await start();
  await giveTo(own, NAME);
  const [first] = scene.nodes;
  const [fromPod, , , fromOutside] = stage.ways;
  const firsts = [fromPod, fromOutside].filter((way) => way !== undefined);
  const named: readonly TrafficFlow[] = [
    { from: stage.caller, to: own.clusterIP, port: 80 },
    { from: first, to: own.clusterIP, port: 80 },
    { ...(fromOutside ?? { from: cluster.outside, to: "" }), port: own.nodePort },
  ];
  return { ...stage, own, moving, firsts, named, start, remove };
}

type InstancesSetup = Awaited<ReturnType<typeof openServices>>;

/** The first proxy has nothing of it, and it is served. */
async function expectNamedServes(
  scene: Scene,
  { caller, by }: InstancesSetup,
  { clusterIP }: ServiceHandle,
): Promise<void> {
  await expectNoTrace(scene, clusterIP);
  for (const from of [caller, ...scene.nodes]) await expectAnswers(from, { to: clusterIP, port: 80 }, { by });
}

/** There and back under load. */
async function changeHands(scene: Scene, stage: InstancesSetup): Promise<Figures> {
  const { moving, caller, by, firsts, named } = stage;
  const atMoving = { to: moving.clusterIP, port: 80 };
  await expectAnswers(caller, atMoving, { by });
  const others = startTraffic([...firsts, ...named.slice(0, 2)], scene.later);
  const moved = startTraffic([{ from: caller, ...atMoving }], scene.later);
  await giveTo(moving, NAME);
  await expectNamedServes(scene, stage, moving);
  await giveTo(moving, null);
  await scene.until("the named instance to have nothing of it", () => tableOf(scene, moving.clusterIP));
  await expectAnswers(caller, atMoving, { by });
  const { longestGapMs } = await moved.stop();
  if (longestGapMs > HANDED_OVER_MS) {
    throw new Error(`wanted an answer within ${HANDED_OVER_MS} ms from who takes over; it took ${longestGapMs} ms`);
  }
  return { ...withoutFailure(await others.stop()), "handed over": `${Math.round(longestGapMs)} ms` };
}

/** What the named instances have of an address. */
async function tableOf({ cluster }: Scene, address: string): Promise<string | undefined> {
  const listed = await Promise.all(
    cluster.nodes.map(({ run }) => run(["nft", "list", "ruleset"]).then(({ stdout }) => tablesNamed(stdout))),
  );
  const lines = listed.flatMap((text) => text.split("\n")).filter((line) => line.includes(` ${address} `));
  return lines.length === 0 ? undefined : lines.join("\n");
}

function tablesNamed(ruleset: string): string {
  return ruleset
    .split(/^(?=table )/m)
    .filter((table) => /^table \S+ fairlead-/.test(table))
    .join("");
}

async function expectNoTable({ cluster }: Scene): Promise<void> {
  for (const { name, run } of cluster.nodes) {
    const { stdout } = await run(["nft", "list", "tables"]);
    if (stdout.includes(`fairlead-${NAME}`)) throw new Error(`wanted no table of ${NAME} on ${name}; came ${stdout}`);
  }
}

/** Each one's clean-up, while the other one serves. */
async function removeEach(scene: Scene, stage: InstancesSetup): Promise<TrafficSeen[]> {
  const { firsts, named, own, start, remove } = stage;
  const atFirst = startTraffic(firsts, scene.later);
  await remove();
  await expectNoTable(scene);
  const seen = [await atFirst.stop()];
  await start();
  await expectNamedServes(scene, stage, own);
  const atNamed = startTraffic(named, scene.later);
  await each(scene, ({ agent }) => able(agent.remove)());
  await expectNoTrace(scene, stage.atService.to);
  await expectNamedServes(scene, stage, own);
  seen.push(await atNamed.stop());
  return seen;
}

async function beside(scene: Scene): Promise<Figures> {
  const stage = await openServices(scene);
  await expectNamedServes(scene, stage, stage.own);
  const moved = await changeHands(scene, stage);
  const cleaned = await removeEach(scene, stage);
  for (const seen of cleaned) withoutFailure(seen);
  return { ...moved, "requests while cleaned up": String(cleaned.reduce((sum, { requests }) => sum + requests, 0)) };
}

/** Where the instance is asked to serve them. */
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

/** What the first proxy has in a node's kernel. */
async function rulesOf({ run }: ClusterNode, mode: string): Promise<string> {
  const { listings, linesOf } = modeNamed(mode).rules;
  const texts = await Promise.all(listings.map((argv) => run(argv)));
  return texts.flatMap(({ stdout }) => linesOf(stdout)).join("\n");
}
