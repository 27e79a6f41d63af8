import { ipvsFaults } from "@fairlead/lab/faults";
import type { Lab } from "@fairlead/lab/plain/lab";
import { whoAnswers } from "@fairlead/lab/plain/requests";
import { clientA, clusterObjects, NODE_A, outside, ovnA, type RawObject, webA1, workload } from "@fairlead/testkit";
import { type ServedNode, serveNode } from "./served.ts";
import type { Spec } from "./suite.ts";

const web = workload(11, { endpoints: [webA1], nodePort: true });
const foreign = workload(14, { endpoints: [ovnA] });
const objects: readonly RawObject[] = [...clusterObjects, ...web.objects, ...foreign.objects];

interface Fault {
  readonly name: string;
  /** What an operator does by hand on the node, a script for sh. */
  readonly byHand: string;
  /** Whether the fault shows; default: somebody is not served. */
  readonly broken?: (lab: Lab) => Promise<boolean>;
}

const served = async (lab: Lab) =>
  (await whoAnswers(lab, clientA, web.clusterIP.IPv4)) === webA1.name &&
  (await whoAnswers(lab, outside, web.clusterIP.IPv4)) === webA1.name &&
  (await whoAnswers(lab, outside, NODE_A.addresses.IPv4, web.nodePort)) === webA1.name;
const unserved = async (lab: Lab) => !(await served(lab));
const left = async (lab: Lab) => (await whoAnswers(lab, clientA, foreign.clusterIP.IPv4)) === "sink";

const target = {
  address: web.clusterIP.IPv4,
  // Whose service is another network's.
  other: foreign.clusterIP.IPv4,
};

const faults: readonly Fault[] = [
  { name: "ipvsadm --clear", byHand: ipvsFaults.serversCleared() },
  { name: "kube-ipvs0 deleted", byHand: ipvsFaults.deviceDeleted() },
  { name: "an address of kube-ipvs0 deleted", byHand: ipvsFaults.addressDeleted(target) },
  {
    name: "sets destroyed, with the rules that ask them",
    byHand: ipvsFaults.setsDestroyed(),
    // The lab's routes bring answers back unmasqueraded as well.
    broken: async (lab) => (await lab.runner("node-a").run(["ipset", "list", "-name"])).stdout === "",
  },
  { name: "a set emptied", byHand: ipvsFaults.setEmptied() },
  {
    name: "the address of another network's service put on kube-ipvs0",
    byHand: ipvsFaults.addressAdded(target),
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
  byHand: string,
  broken: (lab: Lab) => Promise<boolean>,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const demand = (what: string, met: boolean) => {
    if (!met) problems.push(what);
  };
  demand("served before", await served(lab));
  demand("left before", await left(lab));
  demand("nothing to repair before", !(await node.repair()));
  await lab.runner("node-a").run(["sh", "-ec", byHand]);
  demand("the fault shows", await broken(lab));
  demand("the fault is seen", await node.repair());
  demand("served after", await served(lab));
  demand("left after", await left(lab));
  demand("nothing to repair after", !(await node.repair()));
  return problems;
}
