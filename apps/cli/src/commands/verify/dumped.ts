import { errorText } from "@fairlead/base";
import type { Context } from "../../frame/context.ts";
import { type ClusterValues, plannedNode } from "../../inputs/planned.ts";
import { interfaceAddresses } from "../../node/access.ts";
import { noOtherSource, openSysdump, replayedOn, type Sysdump } from "../../sysdump/dump.ts";
import type { NodeReport } from "./all-nodes.ts";
import type { FamilyReport } from "./family-report.ts";
import { reportsOf } from "./look.ts";

type Values = ClusterValues & Parameters<typeof noOtherSource>[0];

/** Compares each node of a dump with what should be programmed there. */
export async function verifyDumped(options: Values, context: Context): Promise<readonly NodeReport[]> {
  noOtherSource(options);
  const dump = await openSysdump(options.sysdump ?? "");
  const reports: NodeReport[] = [];
  for (const node of dump.nodes) {
    try {
      const work = () => dumpedReports(dump, node, options, context);
      reports.push({ node, families: await context.progress(`verifying ${node}`, work) });
    } catch (error) {
      reports.push({ node, problem: errorText(error) });
    }
  }
  return reports;
}

/**
 * What differs on one node of a dump.
 *
 * @throws CommandFailure where the dump does not have what it takes
 */
export async function dumpedReports(
  dump: Sysdump,
  node: string,
  options: Values,
  around: Context,
): Promise<readonly FamilyReport[]> {
  const quiet = <T>(_what: string, work: () => Promise<T>) => work();
  const { options: own, context } = replayedOn(dump, node, options, { ...around, progress: quiet });
  const state = await context.stateHere();
  const live = interfaceAddresses(state);
  const { planned, setup } = await plannedNode(own, context, { proxy: { here: true }, live });
  return reportsOf(planned, setup, { state }, context);
}
