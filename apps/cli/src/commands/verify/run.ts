/** `verify`: compares kernels with what should be programmed. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Finding } from "@fairlead/inspect";
import type { verifyOptions } from "../../facts/plans.ts";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { print } from "../../frame/output.ts";
import type { Style } from "../../frame/terminal.ts";
import { counted, verdictText } from "../../frame/text.ts";
import { demandServices, isIn } from "../../inputs/names.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { interfaceAddresses, oneKernel, runnerFor, stateOf } from "../../node/access.ts";
import { notifyOwnAgent, notifyPodsAgent } from "../../node/agent-endpoint.ts";
import { fromSysdump } from "../../sysdump/dump.ts";
import type { FamilyReport } from "./check.ts";
import { type Held, type NodeReport, reportsOf, verifyDumped, verifyNodes } from "./look.ts";

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
  const lookAt = async (held: Held) =>
    (await reportsOf(planned, setup, held, context)).map((report) => within(options, report));
  let reports: readonly FamilyReport[] = await lookAt(
    first === undefined ? { rules: options.rules ?? "" } : { state: first },
  );
  if (options.repair && differs(reports)) {
    const { serviceProxyName } = setup.config;
    // Its configuration may have the name.
    const itsPod = () => runnerFor({ ...options, "service-proxy-name": serviceProxyName }, context);
    if (options.on === undefined) await notifyOwnAgent(serviceProxyName);
    else await notifyPodsAgent(await itsPod(), serviceProxyName);
    reports = await untilRepaired(reports, async () => lookAt({ state: await stateOf(options, context) }), context);
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

/** What was seen last: once nothing differs anymore, or a minute is over. */
async function untilRepaired(
  before: readonly FamilyReport[],
  look: () => Promise<readonly FamilyReport[]>,
  context: Pick<Context, "progress" | "signal">,
): Promise<readonly FamilyReport[]> {
  return context.progress("waiting for the agent's full sync", async () => {
    let reports = before;
    const deadline = performance.now() + PATIENCE_MS;
    while (differs(reports) && performance.now() < deadline) {
      await sleep(INTERVAL_MS, undefined, { signal: context.signal });
      reports = await look();
    }
    return reports;
  });
}

const SIGNS: Readonly<Record<Finding["kind"], string>> = { missing: "-", extra: "+", different: "~", unknown: "?" };

export function nodeReportsText(reports: readonly NodeReport[], style: Style): string {
  const lines = reports.map((report) => {
    const found =
      "problem" in report ? `${style.warn("not looked at")}: ${report.problem}\n` : foundText(report.families, style);
    return `${style.bold(report.node)}: ${found}`;
  });
  const unseen = reports.filter((report) => "problem" in report).length;
  const differing = reports.filter((report) => "families" in report && differs(report.families)).length;
  const nodes = counted(reports.length, "node");
  const what = [
    ...(differing > 0 ? [`${differing} of ${nodes} ${differing === 1 ? "differs" : "differ"}`] : []),
    ...(unseen > 0 ? [`${unseen} of ${nodes} not looked at`] : []),
  ];
  if (what.length === 0) return `${lines.join("")}${verdictText(true, `nothing differs on ${nodes}`, "", style)}`;
  const next = differing > 0 ? NEXT : "fairlead status -o wide says which agents do not answer";
  return `${lines.join("")}${verdictText(false, what.join(", "), next, style)}`;
}

const NEXT =
  "fairlead explain SERVICE --on NODE says why, fairlead verify --on NODE --repair asks its agent for a full sync";

const MOST = 20;

/** Findings by family and service, and what they come to. */
export function reportText(reports: readonly FamilyReport[], style: Style): string {
  if (!differs(reports)) return `${notesIn(reports, style)}${verdictText(true, agreement(reports), "", style)}`;
  const names = new Set(reports.flatMap(({ services }) => services.flatMap(({ service }) => service ?? [])));
  const what = names.size === 0 ? "what all services share differs" : countedVerb(names.size);
  return `${foundText(reports, style)}${verdictText(false, what, NEXT, style)}`;
}

function countedVerb(count: number): string {
  return `${counted(count, "service")} ${count === 1 ? "differs" : "differ"}`;
}

function agreement(reports: readonly FamilyReport[]): string {
  return `nothing differs (${reports.map(({ family }) => family).join(", ")})`;
}

/** - is missing, + is too much, ~ is different. */
function foundText(reports: readonly FamilyReport[], style: Style): string {
  const all = reports.flatMap(({ family, services, planned }) =>
    services.map(({ service, kind, findings }) => {
      const shared = planned === 0 ? "base rules (no service has this family)" : "all services";
      const head = style.bold(`${service ?? shared} ${family}: ${style.bad(kind)}`);
      const shown = findings
        .slice(0, MOST)
        .map(({ kind: sort, where, what }) => `  ${SIGNS[sort]} ${where}: ${what}\n`);
      const more = findings.length > MOST ? [`  and ${findings.length - MOST} more\n`] : [];
      return [`${head}\n`, ...shown, ...more].join("");
    }),
  );
  const notes = notesIn(reports, style);
  if (all.length > 0) return [...otherConfiguration(reports, style), ...all, notes].join("");
  return `${agreement(reports)}\n${notes}`;
}

function notesIn(reports: readonly FamilyReport[], style: Style): string {
  const notes = reports.flatMap((report) => [
    ...unknownText(report, style),
    ...notesText(report),
    ...(report.fastPath === undefined ? [] : [`note, ${report.family}: ${report.fastPath}\n`]),
  ]);
  return notes.join("");
}

/** Fewer services say nothing about the configuration. */
const FEWEST_DIFFERING = 3;

/** Where most services differ the plan is wrong sooner than the kernel. */
function otherConfiguration(reports: readonly FamilyReport[], style: Style): readonly string[] {
  const planned = reports.reduce((sum, report) => sum + report.planned, 0);
  const differing = reports.flatMap(({ services }) => services).filter(({ service }) => service !== undefined).length;
  if (differing < FEWEST_DIFFERING || differing * 2 <= planned) return [];
  const what = `${differing} of ${planned} services differ: this looks like another configuration`;
  return [`${style.warn(what)} (mode, CIDRs) than that of the proxy, or like no proxy at all\n`];
}

/** A rule that cannot be decided is met by packets to many services: one line says so, with an example. */
function unknownText({ family, unknown: [first, ...more] = [] }: FamilyReport, style: Style): readonly string[] {
  if (first === undefined) return [];
  const others = more.length === 0 ? "" : `, and ${more.length} more kinds of packets`;
  return [`${style.warn("unknown")}, ${family}: ${first.where}: ${first.what}${others}\n`];
}

/** What others' rules do is one line, with an example: it is the same for one service as for the next. */
function notesText({ family, notes: [first, ...more] = [] }: FamilyReport): readonly string[] {
  if (first === undefined) return [];
  const { where, what } = first;
  const others = more.length === 0 ? "" : `, and ${more.length} more like it`;
  return [`note, ${family}: rules of others masquerade: ${where}: ${what}${others}\n`];
}
