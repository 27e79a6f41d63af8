import { access } from "node:fs/promises";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { tool } from "@fairlead/lab/tools/fairlead";
import { requireLogged } from "../expect.ts";
import { startTraffic, withoutFailure } from "../faults/stage.ts";
import { excludedNetwork } from "../multi-cni/untouched.ts";
import { openKubeconfig } from "../operator.ts";
import { nearAndFar, restoreAgents, type Scene, type Spec } from "../spec.ts";
import { configFile, describeNetworks } from "./authority/bystanders.ts";
import { handsOver, make, subnet, untilLearned } from "./learning.ts";
import { ownerChanges, untilAllAgree, untilOwners } from "./owners.ts";

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
