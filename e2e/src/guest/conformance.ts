import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import {
  asSent,
  type ConformanceCase,
  conformanceTable,
  differences,
  expectedWays,
  type Outcome,
  packetFamily,
  REJECT,
  tracedWays,
  webA1,
  webB1,
} from "@fairlead/testkit";
import { serveSctp } from "../cases/conformance/ask-sctp.ts";
import { type CaseGroup, groupCases } from "../cases/conformance/groups.ts";
import { type IpvsNodeState, type ProgrammedIpvs, programmedIpvs } from "../cases/conformance/programmed-ipvs.ts";
import { strays } from "../cases/conformance/strays.ts";
import { problemsOf, type Report, type Suite } from "./suite.ts";

/** The rows that say something of ipvs mode, with what they say. */
const rows = conformanceTable.flatMap((row) => {
  const { ipvs } = row.expected;
  return "skip" in ipvs ? [] : [{ row, expected: ipvs }];
});

/** Every process here is slow to start: as few clusters as there are options. */
const LARGEST_CLUSTER = 1_000;
/** Who is an endpoint of a row over SCTP, and where they listen. */
const sctpServers = [webA1, webB1].map(namespaceOf);
const SCTP_PORTS = [8080];
/** How many rows are probed side by side. */
const PARALLEL = 12;

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
