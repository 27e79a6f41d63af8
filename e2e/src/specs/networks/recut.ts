import { parseCIDRLeniently } from "@fairlead/base";
import { objectPath } from "@fairlead/lab/control-plane/api-client";
import { startTraffic, withoutFailure } from "../faults/stage.ts";
import { excludedNetwork } from "../multi-cni/untouched.ts";
import { nearAndFar, type Scene, type Spec } from "../spec.ts";
import { describeAndLearn } from "./authority/bystanders.ts";
import { handsOver, make, subnet, untilLearned } from "./learning.ts";
import { untilAllAgree, untilOwners, withOwnerChanges } from "./owners.ts";

const TRAFFIC_MS = 15 * 60_000;
const PORTS = [{ port: 80 }];

/** Long enough for the two steps of a rename, short enough to be waited for. */
const REMOVAL_DELAY_MS = 5_000;

export const recut: Spec = {
  name: "a network's subnets are renamed, split, merged, shrunk and grown under load: no request fails, and only what is given back changes hands",
  suite: "networks",
  eachFamily: false,
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
  await describeAndLearn(scene, learning(scene));
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

function learning({ cluster, network }: Scene): object {
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
  await untilLearned(scene, `only ${text.join(", ")}`, ({ cidrs }) => {
    const theirs = cidrs.filter(({ side }) => side === "excluded");
    const found = theirs.map(({ cidr, objects, kept }) => `${cidr} ${objects.join(" ")}${kept ? " kept" : ""}`);
    return found.sort().join() === text.sort().join() ? undefined : found.join(", ");
  });
}
