/** Networks with a load balancer of their own. */

import { NAT_OUTGOING } from "@fairlead/lab/cni/ovn/index";
import type { ClusterNode, ClusterShape, NetworkShape } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { SERVICE_CIDRS } from "@fairlead/lab/provider/netns/ground";
import { PLAIN_TOOL } from "@fairlead/lab/support/machine";
import { requireTool, tool } from "@fairlead/lab/tools/page-reader";
import { expectAnswers, expectRefused } from "../expect.ts";
import { ONE_IS_AN_ANSWER } from "../operator.ts";
import { each, nearAndFar, needs, onlyIn, onlyIPv4, restoreAgents, type Scene, type Spec } from "../spec.ts";
import { excludedNetwork, needsOwnLoadBalancer } from "./untouched.ts";

const PORTS = [{ port: 80 }];

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

const HIDDEN = "flannel gives what comes to its pods from elsewhere the node's address";

const keptAddress: Spec = {
  name: "the same where its pods keep their addresses (natOutgoing off): answers come back past the node of the pod that calls",
  suite: "multi-cni",
  byItself: true,
  unfit: (shape) => needsOwnLoadBalancer(shape) ?? (showsCallers(shape) === undefined ? HIDDEN : undefined),
  run: async (scene) => {
    const { theirs, by, target, address } = await openOurs(scene, showsCallers(scene.cluster)?.name);
    await keepAddresses(scene);
    await expectAnswers(theirs, target, { by, seen: address });
  },
};

export const ownBalancer: readonly Spec[] = [translated, keptAddress];

export const kubeOVNReject: Spec = {
  name: "kube-ovn's REJECT in ipvs mode: pods are refused at ClusterIPs, doctor finds it, and --masquerade-all helps",
  suite: "multi-cni",
  about: ["backend-ipvs"],
  eachFamily: false,
  byItself: true,
  unfit: (shape) =>
    onlyIn(["ipvs"], "kube-ovn has it alongside ipvs mode only")(shape) ??
    needs("learn")(shape) ??
    onlyIPv4("its set is of IPv4")(shape),
  run: async (scene) => {
    const [first] = scene.nodes;
    const { caller, by } = await nearAndFar(scene);
    const service = await scene.service("web", { selector: { app: "web" }, ports: [{ port: 80 }] });
    const target = { to: service.clusterIP, port: 80 };
    await expectAnswers(caller, target, { by });
    await each(scene, (node) => asKubeOVN(scene, node));
    await expectRefused(caller, target);
    // It is masqueraded anyway.
    await expectAnswers(first, target, { by });
    const found = await diagnosis(scene, first);
    if (!found.startsWith("✗")) throw new Error(`wanted doctor to find kube-ovn's REJECT; came ${found}`);
    restoreAgents(scene);
    await each(scene, ({ agent }) => agent.restart({ flags: ["--masquerade-all"] }));
    await expectAnswers(caller, target, { by });
  },
};

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
  const tool = PLAIN_TOOL[scene.family];
  await run([tool, "-t", "raw", "-A", ...rule]);
  scene.later(async () => void (await run([tool, "-t", "raw", "-D", ...rule])));
  return async (): Promise<number> => {
    const { stdout } = await run([`${tool}-save`, "-c", "-t", "raw"]);
    const line = stdout.split("\n").find((one) => one.includes(`-s ${from}/`) && one.includes(`-d ${to}/`)) ?? "";
    return Number(/^\[(\d+):/.exec(line)?.[1]);
  };
}

/**
 * As an operator who sets `natOutgoing: false` on kube-ovn's Subnet, on nodes where its daemon began after the proxy:
 * what it accepts comes before the proxy's rules.
 */
async function keepAddresses(scene: Scene): Promise<void> {
  const tool = PLAIN_TOOL[scene.family];
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

/** The first network of ours whose pods see the address of a caller in another network. */
function showsCallers({ networks }: ClusterShape): NetworkShape | undefined {
  return networks.find(({ name, excluded }) => !excluded && name !== "flannel");
}

const SET = "ovn40services";
/** As kube-ovn has it where there is the ipset KUBE-CLUSTER-IP (pkg/daemon/gateway_linux.go). */
const REJECT =
  `-p tcp -m mark ! --mark 0x4000/0x4000 -m set --match-set ${SET} dst -m conntrack --ctstate NEW ` +
  "-j REJECT --reject-with icmp-port-unreachable";
const CHAINS = ["INPUT", "OUTPUT"] as const;

/** What kube-ovn's daemon does to a node. It goes with the spec. */
async function asKubeOVN({ later }: Scene, { run }: ClusterNode): Promise<void> {
  later(async () => {
    for (const chain of CHAINS) await run(["iptables", "-D", chain, ...REJECT.split(" ")]);
    await run(["ipset", "destroy", SET]);
  });
  await run(["ipset", "create", SET, "hash:net"]);
  await run(["ipset", "add", SET, SERVICE_CIDRS.IPv4]);
  for (const chain of CHAINS) await run(["iptables", "-I", chain, "1", ...REJECT.split(" ")]);
}

/** What `fairlead doctor` says of it on a node. */
async function diagnosis({ cluster }: Scene, { run }: ClusterNode): Promise<string> {
  await requireTool();
  const cidrs = networkCIDRs(cluster, { excluded: false }).flatMap((cidr) => ["--cluster-cidr", cidr]);
  const argv = [process.execPath, tool, "doctor", "--mode", cluster.mode, ...cidrs];
  const { stdout } = await run(["sh", "-c", ONE_IS_AN_ANSWER, "sh", ...argv]);
  return stdout.split("\n").find((line) => line.includes("kube-ovn's REJECT")) ?? stdout;
}
