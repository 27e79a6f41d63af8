import { socketText } from "@fairlead/base";
import type { Finding, ServiceReport } from "@fairlead/inspect";
import { agentFolder } from "@fairlead/lab/agent";
import { type IpvsFault, ipvsFaults } from "@fairlead/lab/faults";
import type { Lab } from "@fairlead/lab/plain/lab";
import { fairlead } from "@fairlead/lab/tools/page-reader";
import {
  clusterObjects,
  NETWORKS,
  NODE_A,
  type RawObject,
  SECOND_NODE_ADDRESS,
  webA1,
  webB1,
  workload,
} from "@fairlead/testkit";
import { problemsOf, type Report, type ServedNode, type Suite, serveNode } from "./suite.ts";

const web = workload(11, { endpoints: [webA1, webB1], nodePort: true });
const objects: readonly RawObject[] = [...clusterObjects, ...web.objects];

const { port } = web;
const address = web.clusterIP.IPv4;
const target = { address, port, destination: socketText(webA1.addresses.IPv4, 8080), other: "10.96.9.9" };

type ExpectedFinding = readonly [kind: Finding["kind"], where: string];

interface Damage {
  readonly what: string;
  readonly fault: IpvsFault;
  readonly found: ExpectedFinding;
}

const virtualServer = `virtual server TCP ${address}:${port}`;

/** The tool starts slowly here: those of one round are done at once. No two of them are found as the same. */
const rounds: readonly (readonly Damage[])[] = [
  [
    { what: "an address missing on kube-ipvs0", fault: "addressDeleted", found: ["missing", "kube-ipvs0"] },
    { what: "a set entry removed", fault: "entryRemoved", found: ["missing", "ipset KUBE-CLUSTER-IP"] },
    { what: "a scheduler changed", fault: "schedulerChanged", found: ["different", virtualServer] },
    { what: "a destination removed", fault: "destinationRemoved", found: ["missing", virtualServer] },
    { what: "a rule removed", fault: "ruleRemoved", found: ["missing", "nat KUBE-MARK-MASQ"] },
  ],
  [
    { what: "an address too many on kube-ipvs0", fault: "addressAdded", found: ["extra", "kube-ipvs0"] },
    { what: "a set entry added", fault: "entryAdded", found: ["extra", "ipset KUBE-CLUSTER-IP"] },
    {
      what: "a virtual server added",
      fault: "serverAdded",
      found: ["extra", `virtual server TCP ${address}:${port + 1}`],
    },
    { what: "a weight changed", fault: "weightChanged", found: ["different", virtualServer] },
    { what: "a destination added", fault: "destinationAdded", found: ["extra", virtualServer] },
  ],
  [
    { what: "kube-ipvs0 gone", fault: "deviceDeleted", found: ["missing", "kube-ipvs0"] },
    { what: "a virtual server removed", fault: "serverRemoved", found: ["missing", virtualServer] },
  ],
];

const HEALTHY = "ipvs verify: a healthy node: nothing differs";

/** What people break in ipvs mode, as `fairlead verify` reports it; the backend restores it each time. */
export const verify: Suite = {
  names: [HEALTHY, ...rounds.flat().map(nameOf)],
  run: async function* (lab): AsyncGenerator<Report> {
    const folder = await agentFolder(objects);
    const node = await serveNode(lab, objects);
    try {
      const look = () => findingsIn(lab, folder.manifests);
      yield { name: HEALTHY, problems: await problemsOf(look()) };
      for (const round of rounds) yield* inflict(lab, node, round, look);
    } finally {
      await node.cleanup();
      await folder.remove();
    }
  },
};

function nameOf({ what }: Damage): string {
  return `ipvs verify: ${what}`;
}

async function* inflict(
  lab: Lab,
  node: ServedNode,
  round: readonly Damage[],
  look: () => Promise<readonly string[]>,
): AsyncGenerator<Report> {
  for (const { fault } of round) await lab.runner("node-a").run(["sh", "-c", ipvsFaults[fault](target)]);
  const findings = await look();
  await node.repair();
  for (const damage of round) {
    const [kind, where] = damage.found;
    const reported = findings.some((one) => one.startsWith(`${kind} ${where}: `));
    const problems = reported ? [] : [`no "${kind} ${where}" among: ${findings.join("; ")}`];
    yield { name: nameOf(damage), problems };
  }
}

async function findingsIn(lab: Lab, manifests: string): Promise<readonly string[]> {
  const cidrs = ["--cluster-cidr", NETWORKS.calico.IPv4, "--exclude-cluster-cidr", NETWORKS.ovn.IPv4];
  const node = [
    "--node",
    NODE_A.name,
    "--node-address",
    NODE_A.addresses.IPv4,
    "--node-address",
    SECOND_NODE_ADDRESS.IPv4,
  ];
  const { out } = await fairlead(lab, "verify", "--mode", "ipvs", "-f", manifests, ...node, ...cidrs, "-o", "json");
  const reports: readonly { readonly family: string; readonly services: readonly ServiceReport[] }[] = JSON.parse(out);
  const own = reports.filter(({ family }) => family === "IPv4").flatMap(({ services }) => services);
  return own.flatMap(({ findings }) => findings.map(({ kind, where, what }) => `${kind} ${where}: ${what}`));
}
