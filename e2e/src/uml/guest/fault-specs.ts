import { clientA, clusterObjects, nodeA, outside, ovnA, type RawObject, webA1, workload } from "@fairlead/testkit";
import type { Lab } from "../../lab/lab.ts";
import { whoAnswers } from "../../one-node/ask.ts";
import { type ServedNode, serveNode } from "./served.ts";
import type { Spec } from "./suite.ts";

const web = workload(11, { endpoints: [webA1], nodePort: true });
const foreign = workload(14, { endpoints: [ovnA] });
const objects: readonly RawObject[] = [...clusterObjects, ...web.objects, ...foreign.objects];

interface Fault {
  readonly name: string;
  /** What somebody does by hand on the node, line by line for sh. */
  readonly byHand: readonly string[];
  /** Whether the fault shows; default: somebody is not served. */
  readonly broken?: (lab: Lab) => Promise<boolean>;
}

const served = async (lab: Lab) =>
  (await whoAnswers(lab, clientA, web.clusterIP.IPv4)) === webA1.name &&
  (await whoAnswers(lab, outside, web.clusterIP.IPv4)) === webA1.name &&
  (await whoAnswers(lab, outside, nodeA.addresses.IPv4, web.nodePort)) === webA1.name;
const unserved = async (lab: Lab) => !(await served(lab));
const left = async (lab: Lab) => (await whoAnswers(lab, clientA, foreign.clusterIP.IPv4)) === "sink";

const faults: readonly Fault[] = [
  { name: "ipvsadm --clear", byHand: ["ipvsadm --clear"] },
  { name: "kube-ipvs0 deleted", byHand: ["ip link delete kube-ipvs0"] },
  { name: "an address of kube-ipvs0 deleted", byHand: [`ip address del ${web.clusterIP.IPv4}/32 dev kube-ipvs0`] },
  {
    name: "rules flushed and sets destroyed",
    byHand: ["iptables -F", "iptables -t nat -F", "iptables -X", "iptables -t nat -X", "ipset destroy"],
    // The lab's routes bring answers back unmasqueraded as well.
    broken: async (lab) => (await lab.runner("node-a").run(["ipset", "list", "-name"])).stdout === "",
  },
  {
    name: "a set emptied",
    byHand: ["ipset flush KUBE-CLUSTER-IP"],
  },
  {
    name: "the address of another network's service put on kube-ipvs0",
    byHand: [`ip address add ${foreign.clusterIP.IPv4}/32 dev kube-ipvs0`],
    broken: async (lab) => !(await left(lab)),
  },
];

/** Done by hand on a node that serves: it shows, and the next look repairs it. */
export const faultSpecs: readonly Spec[] = faults.map(({ name, byHand, broken = unserved }) => ({
  name: `ipvs faults: ${name}`,
  run: async (lab) => {
    const node = await serveNode(lab, objects);
    try {
      return await afterFault(lab, node, byHand, broken);
    } finally {
      await node.cleanup();
    }
  },
}));

async function afterFault(
  lab: Lab,
  node: ServedNode,
  byHand: readonly string[],
  broken: (lab: Lab) => Promise<boolean>,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const demand = (what: string, met: boolean) => {
    if (!met) problems.push(what);
  };
  demand("served before", await served(lab));
  demand("left before", await left(lab));
  demand("nothing to repair before", !(await node.repair()));
  await lab.runner("node-a").run(["sh", "-ec", byHand.join("\n")]);
  demand("the fault shows", await broken(lab));
  demand("the fault is seen", await node.repair());
  demand("served after", await served(lab));
  demand("left after", await left(lab));
  demand("nothing to repair after", !(await node.repair()));
  return problems;
}
