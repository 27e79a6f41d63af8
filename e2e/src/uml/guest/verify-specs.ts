import { socketText } from "@fairlead/base";
import type { Argv } from "@fairlead/kernel";
import {
  clusterObjects,
  networks,
  nodeA,
  type RawObject,
  secondNodeAddress,
  webA1,
  webB1,
  workload,
} from "@fairlead/testkit";
import type { Finding, ServiceReport } from "@fairlead/verify";
import { agentFolder } from "../../agent/manifests.ts";
import type { Lab } from "../../lab/lab.ts";
import { fairlead } from "../../tools/fairlead.ts";
import { type ServedNode, serveNode } from "./served.ts";
import { problemsOf, type Report, type Suite } from "./suite.ts";

const web = workload(11, { endpoints: [webA1, webB1], nodePort: true });
const objects: readonly RawObject[] = [...clusterObjects, ...web.objects];

const address = web.clusterIP.IPv4;
const server = `${address}:${web.port}`;
const destination = socketText(webA1.addresses.IPv4, 8080);
const unknown = "10.96.9.9";

interface Damage {
  readonly what: string;
  readonly byHand: Argv;
  /** Kind and object of the finding. */
  readonly found: readonly [kind: Finding["kind"], where: string];
}

const virtualServer = `virtual server TCP ${server}`;

const damages: readonly Damage[] = [
  {
    what: "an address missing on kube-ipvs0",
    byHand: ["ip", "address", "del", `${address}/32`, "dev", "kube-ipvs0"],
    found: ["missing", "kube-ipvs0"],
  },
  {
    what: "an address too many on kube-ipvs0",
    byHand: ["ip", "address", "add", `${unknown}/32`, "dev", "kube-ipvs0"],
    found: ["extra", "kube-ipvs0"],
  },
  { what: "kube-ipvs0 gone", byHand: ["ip", "link", "delete", "kube-ipvs0"], found: ["missing", "kube-ipvs0"] },
  {
    what: "a set entry removed",
    byHand: ["ipset", "del", "KUBE-CLUSTER-IP", `${address},tcp:${web.port}`],
    found: ["missing", "ipset KUBE-CLUSTER-IP"],
  },
  {
    what: "a set entry added",
    byHand: ["ipset", "add", "KUBE-CLUSTER-IP", `${unknown},tcp:80`],
    found: ["extra", "ipset KUBE-CLUSTER-IP"],
  },
  { what: "a virtual server removed", byHand: ["ipvsadm", "-D", "-t", server], found: ["missing", virtualServer] },
  {
    what: "a virtual server added",
    byHand: ["ipvsadm", "-A", "-t", `${address}:81`, "-s", "rr"],
    found: ["extra", `virtual server TCP ${address}:81`],
  },
  {
    what: "a scheduler changed",
    byHand: ["ipvsadm", "-E", "-t", server, "-s", "wrr"],
    found: ["different", virtualServer],
  },
  {
    what: "a weight changed",
    byHand: ["ipvsadm", "-e", "-t", server, "-r", destination, "-m", "-w", "5"],
    found: ["different", virtualServer],
  },
  {
    what: "a destination removed",
    byHand: ["ipvsadm", "-d", "-t", server, "-r", destination],
    found: ["missing", virtualServer],
  },
  {
    what: "a destination added",
    byHand: ["ipvsadm", "-a", "-t", server, "-r", "10.144.9.9:8080", "-m", "-w", "1"],
    found: ["extra", virtualServer],
  },
  {
    what: "a rule removed",
    byHand: ["iptables", "-t", "nat", "-D", "KUBE-MARK-MASQ", "1"],
    found: ["missing", "nat KUBE-MARK-MASQ"],
  },
];

const HEALTHY = "ipvs verify: a healthy node: nothing differs";

/** What people break in ipvs mode, as `fairlead verify` tells it; the backend restores it each time. */
export const verify: Suite = {
  names: [HEALTHY, ...damages.map(nameOf)],
  run: async function* (lab): AsyncGenerator<Report> {
    const folder = await agentFolder(objects);
    const node = await serveNode(lab, objects);
    try {
      const look = () => findingsIn(lab, folder.manifests);
      yield { name: HEALTHY, problems: await problemsOf(look()) };
      for (const damage of damages)
        yield { name: nameOf(damage), problems: await problemsOf(inflict(lab, node, damage, look)) };
    } finally {
      await node.cleanup();
      await folder.remove();
    }
  },
};

function nameOf({ what }: Damage): string {
  return `ipvs verify: ${what}`;
}

async function inflict(
  lab: Lab,
  node: ServedNode,
  { byHand, found: [kind, where] }: Damage,
  look: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  await lab.runner("node-a").run(byHand);
  const findings = await look();
  await node.repair();
  const told = findings.some((one) => one.startsWith(`${kind} ${where}: `));
  return told ? [] : [`no "${kind} ${where}" among: ${findings.join("; ")}`];
}

/** What verify finds in IPv4, the family that is served here: `missing kube-ipvs0: 10.96.2.11`. */
async function findingsIn(lab: Lab, manifests: string): Promise<readonly string[]> {
  const cidrs = ["--cluster-cidr", networks.calico.IPv4, "--exclude-cluster-cidr", networks.ovn.IPv4];
  const node = ["--node", nodeA.name, "--node-address", nodeA.addresses.IPv4, "--node-address", secondNodeAddress.IPv4];
  const { out } = await fairlead(lab, "verify", "--mode", "ipvs", "-f", manifests, ...node, ...cidrs, "-o", "json");
  const reports: readonly { readonly family: string; readonly services: readonly ServiceReport[] }[] = JSON.parse(out);
  const own = reports.filter(({ family }) => family === "IPv4").flatMap(({ services }) => services);
  return own.flatMap(({ findings }) => findings.map(({ kind, where, what }) => `${kind} ${where}: ${what}`));
}
