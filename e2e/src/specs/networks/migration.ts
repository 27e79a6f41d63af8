import { startTraffic, withoutFailure } from "../faults/traffic.ts";
import { excludedNetwork, needsOwnLoadBalancer } from "../multi-cni/networks.ts";
import { notIn } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Figures, Spec } from "../spec.ts";
import { learnByFile } from "./authority/configuration.ts";
import { learnsTwo } from "./fit.ts";
import { type Fleet, openFleet } from "./fleet.ts";
import { ipPool, make, untilStage } from "./learning.ts";
import { untilAllAgree, untilOwners, withOwnerChanges } from "./owners-on.ts";

const SERVICES = 20;
const TRAFFIC_MS = 20 * 60_000;

const COMMON = { suite: "networks", eachFamily: false, alone: true } as const;

const toBalancer: Spec = {
  ...COMMON,
  name: "from one pod network to another that serves its pods itself, and back: every pod of 20 services moves under load",
  unfit: (shape) =>
    learnsTwo(shape) ??
    needsOwnLoadBalancer(shape) ??
    notIn(["ipvs"], "ipvs mode cannot distinguish the clients of an address")(shape),
  run: async (scene) => {
    await learnByFile(scene, whileMoving(scene));
    // Open vSwitch in user space loses datagrams on a busy machine, with any proxy.
    const fleet = await openFleet(scene, SERVICES, ["TCP"]);
    return movedUnderLoad(scene, fleet, { home: "ours", away: "foreign", changes: SERVICES });
  },
};

const toProxied: Spec = {
  ...COMMON,
  name: "from one pod network to another without a load balancer, and back: every pod of 20 services moves under load",
  unfit: (shape) => learnsTwo(shape) ?? (needsOwnLoadBalancer(shape) === undefined ? "its own serves it" : undefined),
  run: async (scene) => {
    const next = excludedNetwork(scene.cluster).podCIDRs.IPv4 ?? "";
    await learnByFile(scene, bothOurs(scene));
    await make(scene, ipPool("next", next));
    await untilStage(scene, next, "effective");
    const fleet = await openFleet(scene, SERVICES, ["TCP", "UDP"]);
    return movedUnderLoad(scene, fleet, { home: "ours", away: "ours", changes: 0 });
  },
};

export const migration: readonly Spec[] = [toBalancer, toProxied];

/** `multiCNI` while pods move to a network that has a load balancer, as docs/migrate-networks.md has it. */
function whileMoving({ cluster, network }: Scene): unknown {
  return {
    clusterCIDRsFrom: [{ source: "calico-ippools", within: Object.values(network.podCIDRs) }],
    excludeCIDRsFrom: [{ source: "kube-ovn-subnets", within: Object.values(excludedNetwork(cluster).podCIDRs) }],
    excludedFrontends: "excluded-clients",
    mixedServices: "all",
  };
}

/** The same where the other network leaves services to this proxy. */
function bothOurs({ cluster, network }: Scene): unknown {
  const within = [network, excludedNetwork(cluster)].flatMap(({ podCIDRs }) => Object.values(podCIDRs));
  return { clusterCIDRsFrom: [{ source: "calico-ippools", within }] };
}

interface Owned {
  /** Of each service while its pod is in the first network, and in the other one. */
  readonly home: string;
  readonly away: string;
  /** Of owners on each node, on each of the two ways. */
  readonly changes: number;
}

/** No request of a pod of either network, of a node or from outside may fail. */
async function movedUnderLoad(scene: Scene, fleet: Fleet, { home, away, changes }: Owned): Promise<Figures> {
  const { cluster, network, nodes } = scene;
  const [first, second] = nodes;
  const next = excludedNetwork(cluster).name;
  const [own, other] = await Promise.all([scene.pod({ node: first }), scene.pod({ node: second, network: next })]);
  const ownedBy = (owner: string) => Object.fromEntries(fleet.names.map((name) => [name, owner]));
  await untilOwners(scene, ownedBy(home));
  const ways = [fleet.atClusterIPs(own), fleet.atClusterIPs(other), fleet.atClusterIPs(second)];
  const traffic = startTraffic([...ways, fleet.atNodePorts(cluster.outside)], scene.later, TRAFFIC_MS);
  const began = performance.now();
  for (const [to, owner] of [
    [next, away],
    [network.name, home],
  ] as const) {
    await withOwnerChanges(scene, changes, async () => {
      await fleet.moveTo(to);
      await untilOwners(scene, ownedBy(owner));
    });
    await untilAllAgree(scene);
  }
  const took = (performance.now() - began) / 1_000;
  const seen = await traffic.stop();
  const reported = withoutFailure(seen);
  if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
  return { ...reported, "pods moved": `${2 * SERVICES} in ${took.toFixed(0)} s` };
}
