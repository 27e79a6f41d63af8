import { setTimeout as sleep } from "node:timers/promises";
import { networkResource } from "@fairlead/lab/control-plane/network-resources";
import { expectAnswers, expectUntouched } from "../expect.ts";
import { startTraffic, type TrafficFlow, withoutFailure } from "../faults/traffic.ts";
import { excludedNetwork } from "../multi-cni/networks.ts";
import { expectForeign, expectNoTrace } from "../multi-cni/untouched.ts";
import { nearAndFar } from "../near-and-far.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { learnsTwo } from "./fit.ts";
import { untilLeft, untilServed } from "./hand-over.ts";
import { accepted, allow, install, ipPool, learnFrom, make, subnet, untilStage } from "./learning.ts";

const PORTS = [
  { name: "tcp", port: 80, protocol: "TCP" },
  { name: "udp", port: 80, protocol: "UDP" },
] as const;

/** Longer than a guest on a busy machine takes. */
const TRAFFIC_MS = 15 * 60_000;

/** The CRDs, the role, and the objects of the networks that are here, in place of flags. */
async function describeNetworks(scene: Scene): Promise<void> {
  const { cluster, network } = scene;
  await allow(scene);
  await Promise.all([
    install(scene, networkResource("kubeovn.io", "Subnet")),
    install(scene, networkResource("crd.projectcalico.org", "IPPool")),
  ]);
  const { podCIDRs } = excludedNetwork(cluster);
  await make(scene, subnet("ovn-default", Object.values(podCIDRs).join(",")));
  for (const [family, cidr] of Object.entries(network.podCIDRs)) {
    await make(scene, ipPool(`default-${family.toLowerCase()}`, cidr));
  }
  await learnFrom(scene, "--exclude-cidrs-from=kube-ovn-subnets", "--cluster-cidr-from=calico-ippools");
}

/** Services of both networks, and one whose endpoint, of ours, will be in a network that comes later. */
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

export const underLoad: Spec = {
  name: "networks that are learned from Subnets and IPPools are edited under load: no request of another service fails",
  suite: "multi-cni",
  about: ["endpoint-filter", "networks"],
  eachFamily: false,
  alone: true,
  unfit: learnsTwo,
  run: async (scene) => {
    await describeNetworks(scene);
    const { ways, foreign, moving, mover, asked, cidr } = await openServices(scene);
    await expectNoTrace(scene, foreign.clusterIP);
    const traffic = startTraffic(ways, scene.later, TRAFFIC_MS);
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
