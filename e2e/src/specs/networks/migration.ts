/** Pods that move from one network to another, under load. */

import { setTimeout as sleep } from "node:timers/promises";
import { expectAnswers, expectUntouched } from "../expect.ts";
import { startTraffic, type TrafficFlow, withoutFailure } from "../faults/stage.ts";
import { excludedNetwork, expectForeign, expectNoTrace, needsOwnLoadBalancer } from "../multi-cni/untouched.ts";
import { type Figures, nearAndFar, notIn, type Scene, type Spec } from "../spec.ts";
import { describeAndLearn, describeNetworks } from "./authority/bystanders.ts";
import { accepted, ipPool, learnFrom, learnsTwo, make, subnet, untilStage } from "./learning.ts";
import {
  type Fleet,
  openFleet,
  untilAllAgree,
  untilLeft,
  untilOwners,
  untilServed,
  withOwnerChanges,
} from "./owners.ts";

const COMMON = { suite: "networks", eachFamily: false } as const;

const SERVICES = 20;

const toBalancer: Spec = {
  ...COMMON,
  name: "from one pod network to another that serves its pods itself, and back: every pod of 20 services moves under load",
  unfit: (shape) =>
    learnsTwo(shape) ??
    needsOwnLoadBalancer(shape) ??
    notIn(["ipvs"], "ipvs mode cannot distinguish the clients of an address")(shape),
  run: async (scene) => {
    await describeAndLearn(scene, whileMoving(scene));
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
    await describeAndLearn(scene, bothOurs(scene));
    await make(scene, ipPool("next", next));
    await untilStage(scene, next, "effective");
    const fleet = await openFleet(scene, SERVICES, ["TCP", "UDP"]);
    return movedUnderLoad(scene, fleet, { home: "ours", away: "ours", changes: 0 });
  },
};

export const migration: readonly Spec[] = [toBalancer, toProxied];

/** Longer than a guest on a busy machine takes. */
const LOAD_MS = 15 * 60_000;

export const underLoad: Spec = {
  name: "networks that are learned from Subnets and IPPools are edited under load: no request of another service fails",
  suite: "multi-cni",
  about: ["endpoint-filter", "networks"],
  eachFamily: false,
  byItself: true,
  unfit: learnsTwo,
  run: async (scene) => {
    await describeNetworks(scene);
    await learnFrom(scene, "--exclude-cidrs-from=kube-ovn-subnets", "--cluster-cidr-from=calico-ippools");
    const { ways, foreign, moving, mover, asked, cidr } = await openServices(scene);
    await expectNoTrace(scene, foreign.clusterIP);
    const traffic = startTraffic(ways, scene.later, LOAD_MS);
    await sleep(500);
    // It lies in a pool of ours: no service moves until an operator accepts it, for all nodes at once.
    const goes = await make(scene, subnet("late", cidr));
    await untilStage(scene, cidr, "held");
    await expectAnswers(asked.from, asked.target, { by: [mover] });
    const [, left] = await Promise.all([make(scene, accepted(cidr)), untilLeft(asked)]);
    await expectForeign(scene, moving.name);
    await expectNoTrace(scene, moving.clusterIP);
    await expectUntouched(asked.from, asked.target);
    // Our own network grows, and the other one loses a subnet in which an endpoint still lies: nothing changes hands.
    await make(scene, ipPool("more", "10.249.0.0/16"));
    await untilStage(scene, "10.249.0.0/16", "effective");
    await goes();
    await make(scene, subnet("another", "10.248.0.0/16"));
    await untilStage(scene, "10.248.0.0/16", "effective");
    await expectForeign(scene, moving.name);
    await expectNoTrace(scene, foreign.clusterIP);
    // Our own network takes over the addresses.
    const [, served] = await Promise.all([make(scene, ipPool("late", cidr)), untilServed(asked)]);
    const seen = withoutFailure(await traffic.stop());
    return { ...seen, "left within": `${Math.round(left)} ms`, "served again within": `${Math.round(served)} ms` };
  },
};

const TRAFFIC_MS = 20 * 60_000;

/** `multiCNI` while pods move to a network that has a load balancer, as docs/migrate-networks.md has it. */
function whileMoving({ cluster, network }: Scene): object {
  return {
    clusterCIDRsFrom: [{ source: "calico-ippools", within: Object.values(network.podCIDRs) }],
    excludeCIDRsFrom: [{ source: "kube-ovn-subnets", within: Object.values(excludedNetwork(cluster).podCIDRs) }],
    excludedFrontends: "excluded-clients",
    mixedServices: "all",
  };
}

/** The same where the other network leaves services to this proxy. */
function bothOurs({ cluster, network }: Scene): object {
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

const PORTS = [
  { name: "tcp", port: 80, protocol: "TCP" },
  { name: "udp", port: 80, protocol: "UDP" },
] as const;

async function openServices(scene: Scene) {
  const { cluster } = scene;
  const [first, second] = scene.nodes;
  const { caller, by } = await nearAndFar(scene);
  await scene.pod({ node: first, network: excludedNetwork(cluster).name, app: "theirs" });
  const mover = await scene.pod({ node: second, app: "moving" });
  const ours = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
  const foreign = await scene.service("theirs", { selector: { app: "theirs" }, ports: PORTS });
  const moving = await scene.service("moving", { selector: { app: "moving" }, ports: [{ port: 80 }] });
  for (const name of ["a", "b"]) await scene.service(name, { ports: [{ port: 80 }] });
  await expectForeign(scene, foreign.name);
  const asked = { from: caller, target: { to: moving.clusterIP, port: 80 } };
  await expectAnswers(caller, { to: ours.clusterIP, port: 80 }, { by });
  await expectAnswers(caller, asked.target, { by: [mover] });
  const ways: TrafficFlow[] = (["TCP", "UDP"] as const).flatMap((protocol) => [
    { from: caller, to: ours.clusterIP, port: 80, protocol },
    { from: first, to: ours.clusterIP, port: 80, protocol },
  ]);
  return { ways, foreign, moving, mover, asked, cidr: `${mover.addresses.IPv4}/32` };
}
