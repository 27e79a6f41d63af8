import { access } from "node:fs/promises";
import { parseCIDRLeniently } from "@fairlead/base";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { tool } from "@fairlead/lab/tools/page-reader";
import { requireLogged } from "../expect.ts";
import { startTraffic, withoutFailure } from "../faults/stage.ts";
import { excludedNetwork } from "../multi-cni/untouched.ts";
import { openKubeconfig } from "../operator.ts";
import { nearAndFar, restoreAgents, type Scene, type Spec } from "../spec.ts";
import { configFile, describeNetworks, learnByFile } from "./authority/bystanders.ts";
import { handsOver, make, subnet, untilLearned } from "./learning.ts";
import { ownerChanges, untilAllAgree, untilOwners, withOwnerChanges } from "./owners.ts";

const { FAIRLEAD_OLD_AGENT: old = "" } = process.env;
const TRAFFIC_MS = 15 * 60_000;
const PORTS = [{ port: 80 }];
const OWNERS = { ours: "ours", theirs: "foreign", inside: "foreign" } as const;

export const upgrade: Spec = {
  name: "agents that learn networks are upgraded node by node under load, from a build that knew no authority, and rolled back: no service changes hands",
  suite: "networks",
  eachFamily: false,
  alone: true,
  unfit: (shape) =>
    handsOver(shape) ?? (old === "" ? "needs the bundle of a build before in FAIRLEAD_OLD_AGENT" : undefined),
  run: async (scene) => {
    await access(old);
    const { ways, cidr } = await openServices(scene);
    const config = await configFile(scene, learning());
    const start = ({ agent }: ClusterNode, bundle?: string) =>
      agent.restart({
        learns: true,
        memory: scene.namespace,
        flags: [`--config=${config}`],
        ...(bundle && { bundle }),
      });
    restoreAgents(scene);
    for (const node of scene.cluster.nodes) await start(node, old);
    await untilOwners(scene, OWNERS);
    const traffic = startTraffic(ways, scene.later, TRAFFIC_MS);
    for (const node of scene.cluster.nodes) {
      await start(node);
      await untilOwners(scene, OWNERS);
      await requireLogged(node, (line) => line.includes(`fairlead ownership --accept ${cidr}`));
    }
    await untilAllAgree(scene);
    await accept(scene, config, cidr);
    await untilAccepted(scene, cidr);
    await expectNoChange(scene);
    // And back: the state file is of a later version, and the first lists count.
    for (const node of scene.cluster.nodes) {
      await start(node, old);
      await untilOwners(scene, OWNERS);
    }
    await expectNoChange(scene);
    for (const node of scene.cluster.nodes) await start(node);
    await untilAllAgree(scene);
    await untilOwners(scene, OWNERS);
    await expectNoChange(scene);
    const seen = await traffic.stop();
    const reported = withoutFailure(seen);
    if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
    return { ...reported, "agents replaced": String(3 * scene.cluster.nodes.length) };
  },
};

/** What both builds understand. */
function learning(): unknown {
  return {
    clusterCIDRsFrom: ["calico-ippools"],
    excludeCIDRsFrom: ["kube-ovn-subnets"],
    excludedFrontends: "excluded-clients",
  };
}

/**
 * A service of each network, and one whose endpoint lies in a Subnet inside our own pool, which the build before took
 * without consent.
 */
async function openServices(scene: Scene) {
  const { cluster } = scene;
  const [first, second] = scene.nodes;
  const { caller } = await nearAndFar(scene);
  const [inside] = await Promise.all([
    scene.pod({ node: second, app: "inside" }),
    scene.pod({ node: second, network: excludedNetwork(cluster).name, app: "theirs" }),
  ]);
  const cidr = `${inside.addresses.IPv4}/32`;
  await describeNetworks(scene);
  await make(scene, subnet("inside", cidr));
  const service = (name: string, app: string) =>
    scene.service(name, { type: "NodePort", selector: { app }, ports: PORTS });
  const all = await Promise.all([service("ours", "web"), service("theirs", "theirs"), service("inside", "inside")]);
  const node = second.addresses.IPv4 ?? "";
  const ways = [
    ...[caller, first, second].map((from) => all.map(({ clusterIP }) => ({ from, to: clusterIP, port: 80 }))),
    all.map(({ nodePort }) => ({ from: cluster.outside, to: node, port: nodePort })),
  ];
  return { ways, cidr };
}

/** As an operator does, with the new tool. */
async function accept(scene: Scene, config: string, cidr: string): Promise<void> {
  const { cluster, nodes, later } = scene;
  later(() => cluster.api.delete("/api/v1/namespaces/kube-system/configmaps/fairlead-networks"));
  const kubeconfig = await openKubeconfig(scene);
  const [{ name, run }] = nodes;
  const args = ["--config", config, "--kubeconfig", kubeconfig, "--node", name, "--accept", cidr, "--yes"];
  await run([process.execPath, tool, "ownership", ...args]);
}

/** Every agent goes by the ConfigMap: nothing is in effect only because it was before. */
async function untilAccepted(scene: Scene, cidr: string): Promise<void> {
  await untilLearned(scene, `${cidr} to be accepted`, ({ cidrs }) => {
    const { stage, why } = cidrs.find((one) => one.cidr === cidr) ?? {};
    return stage === "effective" && why === undefined ? undefined : `${stage}: ${why}`;
  });
}

async function expectNoChange(scene: Scene): Promise<void> {
  const changes = await ownerChanges(scene);
  if (changes.some((one) => one !== 0)) throw new Error(`wanted no change of owner; came ${changes.join(" and ")}`);
}

/** Long enough for the two steps of a rename, short enough to be waited for. */
const REMOVAL_DELAY_MS = 5_000;

export const recut: Spec = {
  name: "a network's subnets are renamed, split, merged, shrunk and grown under load: no request fails, and only what is given back changes hands",
  suite: "networks",
  eachFamily: false,
  alone: true,
  unfit: handsOver,
  run: async (scene) => {
    const { api } = scene.cluster;
    const { ways, cidrs } = await openHalves(scene);
    const { whole, lower, upper } = cidrs;
    const traffic = startTraffic(ways, scene.later, TRAFFIC_MS);
    await untilOwners(scene, { ours: "ours", lower: "foreign", upper: "foreign" });
    await withOwnerChanges(scene, 0, async () => {
      // Renamed, in both orders.
      await make(scene, subnet("renamed", whole));
      await api.delete(pathOf("ovn-default"));
      await untilDefined(scene, { [whole]: "renamed" });
      await api.delete(pathOf("renamed"));
      await make(scene, subnet("again", whole));
      await untilDefined(scene, { [whole]: "again" });
      // Split, and merged.
      for (const [name, cidr] of [
        ["lower", lower],
        ["upper", upper],
      ] as const) {
        await make(scene, subnet(name, cidr));
      }
      await api.delete(pathOf("again"));
      await untilDefined(scene, { [lower]: "lower", [upper]: "upper" });
      await make(scene, subnet("merged", whole));
      for (const name of ["lower", "upper"]) await api.delete(pathOf(name));
      await untilDefined(scene, { [whole]: "merged" });
    });
    const shrunk = performance.now();
    await withOwnerChanges(scene, 1, async () => {
      await resize(scene, lower);
      await untilOwners(scene, { upper: "ours" });
    });
    const givenBack = performance.now() - shrunk;
    await untilDefined(scene, { [lower]: "merged" });
    await withOwnerChanges(scene, 1, async () => {
      await resize(scene, whole);
      await untilOwners(scene, { ours: "ours", lower: "foreign", upper: "foreign" });
    });
    await untilAllAgree(scene);
    const seen = await traffic.stop();
    const reported = withoutFailure(seen);
    if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
    const after = `${Math.round(givenBack)} ms, with a removal delay of ${REMOVAL_DELAY_MS} ms`;
    return { ...reported, "the freed half was given back after": after };
  },
};

/** A service of ours, and one in each half of the other network's subnet, with all clients that this proxy serves. */
async function openHalves(scene: Scene) {
  const { cluster } = scene;
  const [first, second] = scene.nodes;
  const network = excludedNetwork(cluster);
  await learnByFile(scene, recutLearning(scene));
  const { caller } = await nearAndFar(scene);
  const pods = await Promise.all(
    [first, second].map((node, at) => scene.pod({ node, network: network.name, app: at === 0 ? "lower" : "upper" })),
  );
  const other = await scene.pod({ node: first, network: network.name });
  const cidrs = halvesAround(...pods.map(({ addresses }) => addresses.IPv4 ?? ""));
  // All that is ours to serve is asked: the other network answers its own pods at its own ClusterIPs.
  await resize(scene, cidrs.whole, "ovn-default");
  const ours = await scene.service("ours", { type: "NodePort", selector: { app: "web" }, ports: PORTS });
  const lower = await scene.service("lower", { type: "NodePort", selector: { app: "lower" }, ports: PORTS });
  const upper = await scene.service("upper", { type: "NodePort", selector: { app: "upper" }, ports: PORTS });
  await untilDefined(scene, { [cidrs.whole]: "ovn-default" });
  const all = [ours, lower, upper];
  const node = second.addresses.IPv4 ?? "";
  const ways = [
    ...[caller, first].map((from) => all.map(({ clusterIP }) => ({ from, to: clusterIP, port: 80 }))),
    all.map(({ nodePort }) => ({ from: cluster.outside, to: node, port: nodePort })),
    { from: other, to: ours.clusterIP, port: 80 },
  ];
  return { ways, cidrs };
}

function recutLearning({ cluster, network }: Scene): unknown {
  return {
    clusterCIDRsFrom: [{ source: "calico-ippools", within: Object.values(network.podCIDRs) }],
    excludeCIDRsFrom: [{ source: "kube-ovn-subnets", within: Object.values(excludedNetwork(cluster).podCIDRs) }],
    excludedFrontends: "excluded-clients",
    cidrChanges: { removalDelay: `${REMOVAL_DELAY_MS}ms` },
  };
}

/** The narrowest CIDR with both addresses, and its halves with one each. */
function halvesAround(lower = "", upper = "") {
  const cidr = (address: string, length: number) => parseCIDRLeniently(`${address}/${length}`)?.text ?? "";
  let length = 31;
  while (length > 0 && cidr(lower, length) !== cidr(upper, length)) length--;
  return { whole: cidr(lower, length), lower: cidr(lower, length + 1), upper: cidr(upper, length + 1) };
}

function pathOf(name: string): string {
  return objectPath(subnet(name, ""));
}

async function resize({ cluster }: Scene, cidrBlock: string, name = "merged"): Promise<void> {
  await cluster.api.patch(pathOf(name), { spec: { cidrBlock } });
}

/** Waits until exactly these CIDRs of the network are learned, each from its Subnet, and nothing is kept. */
async function untilDefined(scene: Scene, wanted: Readonly<Record<string, string>>): Promise<void> {
  const text = Object.entries(wanted).map(([cidr, name]) => `${cidr} Subnet/${name}`);
  await untilLearned(scene, `${text.join(", ")} alone`, ({ cidrs }) => {
    const theirs = cidrs.filter(({ side }) => side === "excluded");
    const found = theirs.map(({ cidr, objects, kept }) => `${cidr} ${objects.join(" ")}${kept ? " kept" : ""}`);
    return found.sort().join() === text.sort().join() ? undefined : found.join(", ");
  });
}
