/** The conformance table and kube-proxy's recordings on a kernel with IPVS. */

import { createIpvsBackend, DEVICE, ipvsSemantics } from "@fairlead/backend-ipvs";
import { IP_FAMILIES } from "@fairlead/base";
import type { Backend } from "@fairlead/core";
import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import {
  asSent,
  type ConformanceCase,
  conformanceTable,
  differences,
  expectedWays,
  type GoldenScenario,
  goldenScenarios,
  NODE_A,
  type Outcome,
  PlannedCluster,
  packetFamily,
  REJECT,
  STANDARD_OPTIONS,
  tracedWays,
  webA1,
  webB1,
} from "@fairlead/testkit";
import { type CaseGroup, filterFor, groupCases } from "../cases/conformance/groups.ts";
import { serveSctp, strays } from "../cases/conformance/probe-case.ts";
import {
  type IpvsClient,
  type IpvsNodeState,
  ipvsPorts,
  type ProgrammedIpvs,
  programmedIpvs,
} from "../cases/conformance/programmed.ts";
import { problemsOf, type Report, type Suite } from "./suite.ts";

/** The rows that say something of ipvs mode, with what they say. */
const rows = conformanceTable.flatMap((row) => {
  const { ipvs } = row.expected;
  return "skip" in ipvs ? [] : [{ row, expected: ipvs }];
});

/** The endpoints of a row over SCTP, and where they listen. */
const sctpServers = [webA1, webB1].map(namespaceOf);
const SCTP_PORTS = [8080];

/** Every process here is slow to start: as few clusters as there are options. */
const LARGEST_CLUSTER = 1_000;

/**
 * The conformance table in ipvs mode: the tracer over what the kernel holds, and real packets. What is not programmed
 * by netlink is by the tools, in turn.
 */
export const conformance: Suite = {
  names: rows.map(({ row }) => nameOf(row)),
  run: async function* (lab) {
    const [byNetlink, byTools] = [await programmedIpvs(lab, "netlink"), await programmedIpvs(lab, "tools")];
    await using _ = await serveSctp(lab, sctpServers, SCTP_PORTS);
    const groups = groupCases(
      rows.map(({ row }) => row),
      LARGEST_CLUSTER,
    );
    for (const [at, group] of groups.entries()) yield* runGroup(lab, at % 2 === 0 ? byNetlink : byTools, group);
    await byNetlink.cleanup();
  },
};

const scenarios = goldenScenarios();
const WAYS: readonly IpvsClient[] = ["netlink", "tools"];

/**
 * What the real tools print after ours has programmed a recorded scenario, on top of the one before: just what they
 * printed after kube-proxy. By netlink, and once more from the beginning by the tools.
 */
export const golden: Suite = {
  names: WAYS.flatMap((way) => scenarios.map((scenario) => goldenName(way, scenario))),
  run: async function* (lab) {
    for (const way of WAYS) {
      const backends = (await ipvsPorts(lab, way)).map((port) => createIpvsBackend(port));
      for (const scenario of scenarios) {
        yield { name: goldenName(way, scenario), problems: await problemsOf(compare(lab, backends, scenario)) };
      }
      for (const backend of backends) await backend.cleanup();
    }
  },
};

/** How many rows are probed side by side. */
const PARALLEL = 12;

async function* runGroup(lab: Lab, node: ProgrammedIpvs, group: CaseGroup): AsyncGenerator<Report, void, void> {
  const state = await node.program(group);
  const waiting = [...group.rows];
  const reports: Report[] = [];
  const lane = async () => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      reports.push({ name: nameOf(row), problems: await problemsOf(check(lab, row, state)) });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, lane));
  yield* reports;
}

const options = {
  ...STANDARD_OPTIONS,
  excludeClusterCIDRs: [],
  nodePortAddresses: [`${NODE_A.addresses.IPv4}/32`, `${NODE_A.addresses.IPv6}/128`],
};

async function check(
  lab: Lab,
  row: ConformanceCase,
  { ruleSets, environment }: IpvsNodeState,
): Promise<readonly string[]> {
  const { ipvs } = row.expected;
  if ("skip" in ipvs) return [];
  const traced = tracedWays(row, ruleSets[packetFamily(row.packet)], environment);
  const { localAddresses: moreAddresses = [] } = environment;
  const sent = { ...row, packet: asSent(row.packet, environment) };
  const options = { moreAddresses, sctpSockets: true };
  const seen = row.unreal === undefined ? await strays(lab, sent, seenAs(ipvs), options) : [];
  return [
    ...differences(expectedWays(ipvs), traced, { probabilities: true }).map((text) => `tracer: ${text}`),
    ...seen.map((text) => `real packets: ${text}`),
  ];
}

/** A virtual server without destinations answers just as a rule with REJECT does. */
function seenAs(outcome: Outcome): Outcome {
  return outcome.verdict === "empty" ? REJECT : outcome;
}

function nameOf({ name }: ConformanceCase): string {
  return `ipvs on the real kernel: ${name}`;
}

/** The recordings were made on a node with one address of each family, these. */
const RECORDED_ON = [
  ["10.201.0.60", NODE_A.addresses.IPv4],
  ["fd00:201::60", NODE_A.addresses.IPv6],
] as const;

function goldenName(way: IpvsClient, { name }: GoldenScenario): string {
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
