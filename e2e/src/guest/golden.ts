import { createIpvsBackend, DEVICE, ipvsSemantics } from "@fairlead/backend-ipvs";
import { IP_FAMILIES } from "@fairlead/base";
import type { Backend } from "@fairlead/core";
import type { Lab } from "@fairlead/lab/plain/lab";
import { type GoldenScenario, goldenScenarios, NODE_A, PlannedCluster, STANDARD_OPTIONS } from "@fairlead/testkit";
import { filterFor } from "../cases/conformance/iptables-subjects.ts";
import { type IpvsClient, ipvsPorts } from "../cases/conformance/programmed-ipvs.ts";
import { problemsOf, type Suite } from "./suite.ts";

/** The recordings were made on a node with one address of each family, these. */
const RECORDED_ON = [
  ["10.201.0.60", NODE_A.addresses.IPv4],
  ["fd00:201::60", NODE_A.addresses.IPv6],
] as const;

const options = {
  ...STANDARD_OPTIONS,
  excludeClusterCIDRs: [],
  nodePortAddresses: [`${NODE_A.addresses.IPv4}/32`, `${NODE_A.addresses.IPv6}/128`],
};

const scenarios = goldenScenarios();
const WAYS: readonly IpvsClient[] = ["netlink", "tools"];

/**
 * What the real tools print after ours has programmed a recorded scenario, on top of the one before: just what they
 * printed after kube-proxy. By netlink, and once more from the beginning by the tools.
 */
export const golden: Suite = {
  names: WAYS.flatMap((way) => scenarios.map((scenario) => nameOf(way, scenario))),
  run: async function* (lab) {
    for (const way of WAYS) {
      const backends = (await ipvsPorts(lab, way)).map((port) => createIpvsBackend(port));
      for (const scenario of scenarios) {
        yield { name: nameOf(way, scenario), problems: await problemsOf(compare(lab, backends, scenario)) };
      }
      for (const backend of backends) await backend.cleanup();
    }
  },
};

function nameOf(way: IpvsClient, { name }: GoldenScenario): string {
  return `golden in ipvs mode by ${way}: ${name}`;
}

async function compare(
  lab: Lab,
  backends: readonly Backend[],
  { objects, dualStack, ipvs }: GoldenScenario,
): Promise<readonly string[]> {
  const cluster = new PlannedCluster({ options, semantics: ipvsSemantics, filter: filterFor(options) });
  cluster.advance(objects);
  const used = IP_FAMILIES.slice(0, dualStack ? 2 : 1);
  for (const [at, family] of used.entries()) await backends[at]?.sync(cluster.plan(family));
  const recorded = linesOf(atNodeA(ipvs));
  const printed = linesOf(await print(lab, dualStack));
  return [
    ...recorded.filter((line) => !printed.includes(line)).map((line) => `missing: ${line}`),
    ...printed.filter((line) => !recorded.includes(line)).map((line) => `too much: ${line}`),
  ];
}

const FILTER_AND_NAT = (tool: string) => `${tool} -t filter; ${tool} -t nat`;

async function print(lab: Lab, dualStack: boolean): Promise<string> {
  const lines = [
    "ipvsadm --save -n",
    `ip -oneline address show dev ${DEVICE}`,
    "ipset save",
    FILTER_AND_NAT("iptables-save"),
    ...(dualStack ? [FILTER_AND_NAT("ip6tables-save")] : []),
  ];
  return (await lab.runner("node-a").run(["sh", "-ec", lines.join("\n")])).stdout;
}

function atNodeA(recording: string): string {
  return RECORDED_ON.reduce((text, [recorded, ours]) => text.replaceAll(recorded, ours), recording);
}

/** Lines that say something, in an order of their own: index and seed of what is listed are the kernel's affair. */
function linesOf(text: string): readonly string[] {
  const lines = text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) =>
      line
        .replace(/^\d+: /, "")
        .replace(/ initval 0x[0-9a-f]+/, "")
        .replace(/\[\d+:\d+\]/, "[0:0]")
        .trim(),
    );
  return lines.sort();
}
