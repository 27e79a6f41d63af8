import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { networkCIDRs } from "@fairlead/lab/provider/netns/agent";
import { SERVICE_CIDRS } from "@fairlead/lab/provider/netns/ground";
import { requireTool, tool } from "@fairlead/lab/tools/fairlead";
import { each, restoreAgents } from "../every-node.ts";
import { expectAnswers, expectRefused } from "../expect.ts";
import { nearAndFar } from "../near-and-far.ts";
import { needs, onlyIn, onlyIPv4 } from "../needs.ts";
import type { Scene } from "../scene.ts";
import type { Spec } from "../spec.ts";
import { ONE_IS_AN_ANSWER } from "../tool-on.ts";

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

export const kubeOVNReject: Spec = {
  name: "kube-ovn's REJECT in ipvs mode: pods are refused at ClusterIPs, doctor finds it, and --masquerade-all helps",
  suite: "multi-cni",
  about: ["backend-ipvs"],
  eachFamily: false,
  alone: true,
  unfit: (shape) =>
    onlyIn(["ipvs"], "kube-ovn has it beside ipvs mode only")(shape) ??
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
