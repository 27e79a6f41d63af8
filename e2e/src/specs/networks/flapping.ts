import { setTimeout as sleep } from "node:timers/promises";
import type { Pod } from "@fairlead/lab/provider/cluster";
import { startTraffic, withoutFailure } from "../faults/traffic.ts";
import { excludedNetwork } from "../multi-cni/networks.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { learnByFile } from "./authority/configuration.ts";
import { handsOver } from "./fit.ts";
import { ownerChanges, untilEndpoints, untilOwners, withOwnerChanges } from "./owners-on.ts";

const TRAFFIC_MS = 15 * 60_000;
const PORTS = [{ port: 80 }];
const NAMES = ["a", "b", "c"] as const;
/** Three times the delay of ownership in all. */
const ROUNDS = 10;
const REST_MS = 1_500;
const OWNERSHIP_DELAY_MS = 10_000;

export const flapping: Spec = {
  name: "services with pods of two networks lose their pods here and get them back again and again, under load: the owner stays",
  suite: "networks",
  eachFamily: false,
  alone: true,
  unfit: handsOver,
  run: async (scene) => {
    const { ways, ours } = await openMixed(scene);
    const ownedBy = (owner: string) => Object.fromEntries(NAMES.map((name) => [name, owner]));
    await untilOwners(scene, ownedBy("mixed"));
    const traffic = startTraffic(ways, scene.later, TRAFFIC_MS);
    const began = performance.now();
    const before = await ownerChanges(scene);
    let late = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const left = performance.now();
      await turn(scene, ours, false);
      await sleep(REST_MS);
      await turn(scene, ours, true);
      // On a busy machine the pods may have been away for longer: then they go, and come back.
      if (performance.now() - left >= OWNERSHIP_DELAY_MS) late++;
      await sleep(REST_MS);
    }
    await untilOwners(scene, ownedBy("mixed"));
    const after = await ownerChanges(scene);
    const most = 2 * NAMES.length * late;
    if (after.some((count, at) => count - (before[at] ?? 0) > most)) {
      throw new Error(`wanted ${most} changes of owner at most; came ${after}, after ${before}`);
    }
    const flapped = (performance.now() - began) / 1_000;
    // What is gone for good goes to its network, once; what comes is taken at once.
    await withOwnerChanges(scene, NAMES.length, async () => {
      await turn(scene, ours, false);
      await untilOwners(scene, ownedBy("foreign"));
    });
    await withOwnerChanges(scene, NAMES.length, async () => {
      await turn(scene, ours, true);
      await untilOwners(scene, ownedBy("mixed"));
    });
    const seen = await traffic.stop();
    const reported = withoutFailure(seen);
    if (seen.endedEarly) throw new Error(`wanted traffic all the while; it ended after ${TRAFFIC_MS} ms`);
    return { ...reported, flapped: `${ROUNDS} times in ${flapped.toFixed(0)} s` };
  },
};

/** Services with a pod of each network, and all clients that this proxy serves. */
async function openMixed(scene: Scene) {
  const { cluster, network } = scene;
  const [first, second] = scene.nodes;
  const theirs = excludedNetwork(cluster);
  await learnByFile(scene, {
    clusterCIDRsFrom: [{ source: "calico-ippools", within: Object.values(network.podCIDRs) }],
    excludeCIDRsFrom: [{ source: "kube-ovn-subnets", within: Object.values(theirs.podCIDRs) }],
    excludedFrontends: "excluded-clients",
  });
  const spec = (app: string) => ({ type: "NodePort", selector: { app }, ports: PORTS });
  const services = await Promise.all(NAMES.map((name) => scene.service(name, spec(name))));
  await Promise.all(NAMES.map((app) => scene.pod({ node: second, network: theirs.name, app })));
  const ours = await Promise.all(NAMES.map((app) => scene.pod({ node: first, app })));
  const caller = await scene.pod({ node: first });
  const node = second.addresses.IPv4 ?? "";
  const ways = [
    ...[caller, second].map((from) => services.map(({ clusterIP }) => ({ from, to: clusterIP, port: 80 }))),
    services.map(({ nodePort }) => ({ from: cluster.outside, to: node, port: nodePort })),
  ];
  return { ways, ours };
}

/** Our pods leave their services, or come back; they go on serving, as what is asked of them is under way. */
async function turn(scene: Scene, ours: readonly Pod[], on: boolean): Promise<void> {
  await Promise.all(ours.map((pod, at) => pod.setLabels({ app: on ? (NAMES[at] ?? null) : null })));
  await Promise.all(NAMES.map((name) => untilEndpoints(scene, name, on ? 2 : 1)));
}
