/** `fairlead verify`: compares, has the agent repair, prints. */

import { setTimeout as sleep } from "node:timers/promises";
import type { NodeState } from "@fairlead/inspect";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { demandServices, isIn } from "../../inputs/namespaces.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { interfaceAddresses, oneKernel, runnerFor, stateOf } from "../../node/access.ts";
import { tellOwnAgent, tellPodsAgent } from "../../node/full-sync.ts";
import { print } from "../../output/output.ts";
import { fromSysdump } from "../../sysdump/dump.ts";
import type { FamilyReport } from "./check.ts";
import { reportsOf, verifyDumped, verifyNodes } from "./look.ts";
import type { verifyOptions } from "./options.ts";
import { nodeReportsText, reportText } from "./show.ts";

export async function run({ options: given }: CommandInput<typeof verifyOptions>, around: Context): Promise<ExitCode> {
  if (given.watch) return watchKernel(given, around);
  if (given["all-nodes"]) return allNodes(given, around);
  oneKernel(given);
  if (given.repair && given.sysdump !== undefined) {
    throw new UsageError("--repair: an archive has no agent that could be asked; leave out --sysdump");
  }
  const { options, context } = await fromSysdump(given, around);
  if (options.repair && options.rules !== undefined) {
    throw new UsageError("--repair: a listing has no agent that could be asked; leave out --rules");
  }
  const node = options.node ?? options.on;
  const read = () => context.progress(`reading the kernel of ${node ?? "this node"}`, () => stateOf(options, context));
  const first = options.rules === undefined ? await read() : undefined;
  const addresses = first && interfaceAddresses(first);
  const proxy = { on: options.on, here: options.on === undefined && options.rules === undefined };
  const { planned, setup } = await plannedNode({ ...options, node }, context, { proxy, live: addresses });
  demandServices(options.namespace, [planned.state]);
  const lookAt = async (held: { readonly state: NodeState } | { readonly rules: string }) =>
    (await reportsOf(planned, setup, held, context)).map((report) => within(options, report));
  let reports = await lookAt(first === undefined ? { rules: options.rules ?? "" } : { state: first });
  if (options.repair && differs(reports)) {
    const { serviceProxyName } = setup.config;
    // Its configuration may have the name.
    const itsPod = () => runnerFor({ ...options, "service-proxy-name": serviceProxyName }, context);
    const ask = async () =>
      options.on === undefined ? tellOwnAgent(serviceProxyName) : tellPodsAgent(await itsPod(), serviceProxyName);
    const look = async () => lookAt({ state: await stateOf(options, context) });
    reports = await askForFullSync(reports, { ask, look, differs }, context);
  }
  await print(options.output, reports, () => reportText(reports, context.style), context);
  return differs(reports) ? 1 : 0;
}

/** Of the namespace that is asked for, with what all services share. */
export function within({ namespace }: { readonly namespace: string | undefined }, report: FamilyReport): FamilyReport {
  const isAsked = ({ service }: { readonly service?: string }) => service === undefined || isIn(namespace, service);
  const { services, notes, unknown } = report;
  return {
    ...report,
    services: services.filter(isAsked),
    ...(notes && { notes: notes.filter(isAsked) }),
    ...(unknown && { unknown: unknown.filter(isAsked) }),
  };
}

type Values = CommandInput<typeof verifyOptions>["options"];

async function watchKernel(options: Values, context: Context): Promise<ExitCode> {
  const { watch } = await import("./watch/run.ts");
  await context.untilStopped(() => watch(options, context));
  return 0;
}

async function allNodes(options: Values, context: Context): Promise<ExitCode> {
  const { rules, on, live, repair, node } = options;
  if (rules !== undefined || on !== undefined || live || repair || node !== undefined) {
    throw new UsageError("--all-nodes: leave out --node, --on, --live, --rules and --repair");
  }
  const found = await (options.sysdump === undefined ? verifyNodes(options, context) : verifyDumped(options, context));
  const reports = found.map((report) =>
    "problem" in report ? report : { ...report, families: report.families.map((one) => within(options, one)) },
  );
  await print(options.output, reports, () => nodeReportsText(reports, context.style), context);
  if (reports.every((report) => "problem" in report)) throw new CommandFailure("no node was looked at");
  return reports.some((report) => "problem" in report || differs(report.families)) ? 1 : 0;
}

function differs(reports: readonly FamilyReport[]): boolean {
  return reports.some(({ services }) => services.length > 0);
}

/** How long a full sync may take, and how often is looked whether it is done. */
const PATIENCE_MS = 60_000;
const INTERVAL_MS = 1_000;

/** What is needed to repair a node. */
interface Repair<Report> {
  /** Asks the node's agent for a full sync. */
  readonly ask: () => Promise<void>;
  /** Compares again. */
  readonly look: () => Promise<Report>;
  readonly differs: (report: Report) => boolean;
}

/**
 * Asks an agent for a full sync and looks until nothing differs anymore, or a minute is over.
 *
 * @returns what was seen last
 * @throws CommandFailure when there is no agent, or it may not be notified
 */
async function askForFullSync<Report>(
  before: Report,
  { ask, look, differs }: Repair<Report>,
  context: Pick<Context, "progress" | "signal">,
): Promise<Report> {
  await ask();
  return context.progress("waiting for the agent's full sync", async () => {
    let report = before;
    const deadline = performance.now() + PATIENCE_MS;
    while (differs(report) && performance.now() < deadline) {
      await sleep(INTERVAL_MS, undefined, { signal: context.signal });
      report = await look();
    }
    return report;
  });
}
