import { NAT_OUTGOING } from "@fairlead/lab/cni/ovn/index";
import type { ClusterNode, ClusterShape, NetworkShape } from "@fairlead/lab/provider/cluster";
import { each } from "../every-node.ts";
import { expectAnswers, expectRefused } from "../expect.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { excludedNetwork, needsOwnLoadBalancer } from "./networks.ts";

const PORTS = [{ port: 80 }];

const toolOf = ({ family }: Scene) => (family === "IPv6" ? "ip6tables" : "iptables");

/** A service of ours with an endpoint on each node, and a pod of the excluded network that calls from the first. */
async function openOurs(scene: Scene, own = scene.network.name) {
  const [first, second] = scene.nodes;
  const network = excludedNetwork(scene.cluster).name;
  const [near, far, theirs] = await Promise.all([
    scene.pod({ node: first, network: own, app: "web" }),
    scene.pod({ node: second, network: own, app: "web" }),
    scene.pod({ node: first, network }),
  ]);
  const { clusterIP } = await scene.service("web", { selector: { app: "web" }, ports: PORTS });
  return {
    theirs,
    by: [near, far],
    target: { to: clusterIP, port: 80 },
    address: theirs.addresses[scene.family] ?? "",
  };
}

/** Packets of an address to another one that come to a node, from now on. @returns how many there were */
async function countPackets(scene: Scene, { run }: ClusterNode, from: string, to: string) {
  const rule = ["PREROUTING", "-s", from, "-d", to];
  const tool = toolOf(scene);
  await run([tool, "-t", "raw", "-A", ...rule]);
  scene.later(async () => void (await run([tool, "-t", "raw", "-D", ...rule])));
  return async (): Promise<number> => {
    const { stdout } = await run([`${tool}-save`, "-c", "-t", "raw"]);
    const line = stdout.split("\n").find((one) => one.includes(`-s ${from}/`) && one.includes(`-d ${to}/`)) ?? "";
    return Number(/^\[(\d+):/.exec(line)?.[1]);
  };
}

const translated: Spec = {
  name: "pods of a network with a load balancer of its own call our service: it translates, and no node sees the ClusterIP",
  suite: "multi-cni",
  unfit: needsOwnLoadBalancer,
  run: async (scene) => {
    const { theirs, by, target, address } = await openOurs(scene);
    await expectAnswers(theirs, target, { by });
    const empty = await scene.service("empty", { ports: PORTS });
    const [first] = scene.nodes;
    const [served, refused] = await Promise.all([
      countPackets(scene, first, address, target.to),
      countPackets(scene, first, address, empty.clusterIP),
    ]);
    await expectAnswers(theirs, target, { by });
    // It has nothing of a service without endpoints: those packets come to the node, and are refused.
    await expectRefused(theirs, { to: empty.clusterIP, port: 80 });
    const [atOurs, atEmpty] = [await served(), await refused()];
    if (atOurs !== 0 || !(atEmpty > 0)) {
      throw new Error(
        `wanted 0 packets to the ClusterIP on the node, and some to the empty one: ${atOurs}, ${atEmpty}`,
      );
    }
  },
};

/**
 * As an operator who sets `natOutgoing: false` on kube-ovn's Subnet, on nodes where its daemon began after the proxy:
 * what it accepts comes before the proxy's rules.
 */
async function keepAddresses(scene: Scene): Promise<void> {
  const tool = toolOf(scene);
  const pods = excludedNetwork(scene.cluster).podCIDRs[scene.family] ?? "";
  const accepted = [
    ["-s", pods],
    ["-d", pods],
  ].map((match) => ["FORWARD", ...match, "-j", "ACCEPT"]);
  await each(scene, async ({ run }) => {
    scene.later(async () => {
      for (const rule of accepted) await run([tool, "-D", ...rule]);
      await run([tool, "-t", "nat", "-A", ...NAT_OUTGOING]);
    });
    for (const rule of accepted) await run([tool, "-I", ...rule]);
    await run([tool, "-t", "nat", "-D", ...NAT_OUTGOING]);
  });
}

const HIDDEN = "flannel gives what comes to its pods from elsewhere the node's address";

/** The first network of ours whose pods see who calls from another network. */
function showsCallers({ networks }: ClusterShape): NetworkShape | undefined {
  return networks.find(({ name, excluded }) => !excluded && name !== "flannel");
}

const keptAddress: Spec = {
  name: "the same where its pods keep their addresses (natOutgoing off): answers come back past the node of the pod that calls",
  suite: "multi-cni",
  alone: true,
  unfit: (shape) => needsOwnLoadBalancer(shape) ?? (showsCallers(shape) === undefined ? HIDDEN : undefined),
  run: async (scene) => {
    const { theirs, by, target, address } = await openOurs(scene, showsCallers(scene.cluster)?.name);
    await keepAddresses(scene);
    await expectAnswers(theirs, target, { by, seen: address });
  },
};

export const ownBalancer: readonly Spec[] = [translated, keptAddress];
