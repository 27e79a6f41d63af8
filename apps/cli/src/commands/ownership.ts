/** `ownership`: which network serves each service, and why. */

import { followOwnership, type SuggestedCIDR, suggestCIDRs } from "@fairlead/inspect";
import { type OwnershipRow, ownershipReport } from "@fairlead/intake";
import { readCalls, unanswered } from "../cluster/called-services.ts";
import { openCluster } from "../cluster/cluster.ts";
import type { ownershipOptions } from "../facts/nodes.ts";
import type { CommandInput, ExitCode } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { UsageError } from "../frame/errors.ts";
import { printList } from "../frame/output.ts";
import type { Style } from "../frame/terminal.ts";
import { counted, firstOf, tableText } from "../frame/text.ts";
import { nodeNameOf } from "../inputs/cluster-access.ts";
import { configurationOf, sayConfiguration } from "../inputs/configuration.ts";
import { isIn } from "../inputs/names.ts";
import { plannedNode } from "../inputs/planned.ts";
import { liveSource } from "../inputs/source.ts";
import { type AgentOwnership, agentOwnership } from "../node/agent-endpoint.ts";
import { changeConsent } from "./ownership-consent.ts";

type Options = CommandInput<typeof ownershipOptions>["options"];

export async function run({ options }: CommandInput<typeof ownershipOptions>, context: Context): Promise<ExitCode> {
  const running = options.live || options.on !== undefined;
  if (options.watch && (running || options.output !== "table")) {
    throw new UsageError("--watch: prints a table of what the objects say; leave out --live, --on and --output");
  }
  if (options.accept !== undefined || options.forget !== undefined) await changeConsent(options, context);
  else if (options.watch) await watch(options, context);
  else if (running) await report(options, await fromAgent(options, context), context);
  else await report(options, await fromObjects(options, context), context);
  return 0;
}

interface Report {
  readonly services: readonly OwnershipRow[];
  readonly suggestedCIDRs: readonly SuggestedCIDR[];
  readonly networks?: AgentOwnership["networks"];
  /** Services that the API server calls, and that nodes get no answer of; absent: this is not known. */
  readonly unansweredCalls?: ReturnType<typeof unanswered>;
}

async function fromObjects(options: Options, context: Context): Promise<Report> {
  const { planned, setup, learned } = await plannedNode(options, context, { everywhere: true });
  const { config, filter } = setup;
  const own = learned?.decision.clusterCIDRs ?? config.clusterCIDRs;
  const known = [...own, ...(learned?.decision.excludeCIDRs ?? filter.excludeCIDRs)];
  const nodeAddresses = Object.values(planned.options.nodeIPs);
  const owners = ownershipReport(planned.planner.ownerships(), learned?.report, planned.pods);
  return {
    ...owners,
    ...(await callsOf(options, owners.services, context)),
    // Without a CIDR of the own pods every pod would look like another network's.
    suggestedCIDRs: own.length === 0 ? [] : suggestCIDRs(planned.state, { known, nodeAddresses }),
  };
}

/** Of a cluster, where some service is left to another network; files seldom have these objects. */
async function callsOf(
  options: Options,
  rows: readonly OwnershipRow[],
  context: Context,
): Promise<Pick<Report, "unansweredCalls">> {
  if (options.file.length > 0 || rows.every(({ frontends }) => frontends === "all")) return {};
  const calls = await readCalls(openCluster(options, context));
  if (calls.unlisted.length > 0) {
    context.warn(
      `may not list ${calls.unlisted.join(", ")}: the API server may call Services that are not answered here`,
    );
  }
  return { unansweredCalls: unanswered(calls, rows) };
}

async function fromAgent(options: Options, context: Context): Promise<Report> {
  return { ...(await agentOwnership(options, context)), suggestedCIDRs: [] };
}

async function report({ output, namespace }: Options, all: Report, context: Context): Promise<void> {
  const found = { ...all, services: all.services.filter(({ service }) => isIn(namespace, service)) };
  if (found.services.length === 0) {
    context.warn(`No services found${namespace === undefined ? "" : ` in ${namespace} namespace`}.`);
  }
  const text = (wide: boolean) =>
    `${ownershipText(found.services, found.suggestedCIDRs, context.style, wide)}${callsText(found.unansweredCalls)}`;
  const names = [...new Set(found.services.map(({ service }) => service))];
  await printList(output, found, { text, names }, context);
}

async function watch(options: Options, context: Context): Promise<void> {
  const { out, style, signal, untilStopped } = context;
  const configured = await configurationOf(options, { any: true }, context);
  sayConfiguration(configured, context);
  const { setup } = configured;
  const source = await liveSource(options, setup.config, context);
  const request = { ...setup, nodeName: nodeNameOf(options) };
  const wanted = ({ service }: OwnershipRow) => isIn(options.namespace, service);
  const listener = {
    onAll: (rows: readonly OwnershipRow[]) => out(ownershipText(rows.filter(wanted), [], style)),
    onChange: (row: OwnershipRow) => void (wanted(row) && out(changeText(row, style))),
    onGone: (row: OwnershipRow) => void (wanted(row) && out(goneText(row))),
  };
  await untilStopped(() => followOwnership(source, request, listener, signal));
}

function ownershipText(
  rows: readonly OwnershipRow[],
  suggested: readonly SuggestedCIDR[],
  style: Style,
  wide = false,
): string {
  const head = ["service", "family", "owner", "own", "excluded", ...(wide ? ["frontends", "cidrs"] : []), "why"];
  const cellsOf = (row: OwnershipRow) => {
    const all = cells(row, style);
    const more = [row.frontends, row.decidingCIDRs.join(",") || "-"];
    return wide ? [...all.slice(0, -1), ...more, ...all.slice(-1)] : all;
  };
  const table = rows.length === 0 ? "" : tableText(head, rows.map(cellsOf));
  if (suggested.length === 0) return table;
  const lines = suggested.map(({ cidr, endpoints, services }) => {
    return `  ${cidr}   ${counted(endpoints, "endpoint")} of ${counted(services, "service")}\n`;
  });
  return `${table}\nNot in any CIDR given, perhaps another network's (--exclude-cluster-cidr):\n${lines.join("")}`;
}

/** Services that the API server calls and gets no answer of: a line each, below the table. */
function callsText(calls: readonly { readonly service: string; readonly objects: readonly string[] }[] = []): string {
  if (calls.length === 0) return "";
  const lines = calls.map(({ service, objects }) => `  ${service}   ${named(objects)}\n`);
  return `\nCalled by the API server, and left unanswered for it (excludedFrontends: excluded-clients answers):\n${lines.join("")}`;
}

function changeText(row: OwnershipRow, style: Style): string {
  return `${cells(row, style).join("   ")}\n`;
}

function goneText({ service, ipFamily }: OwnershipRow): string {
  return `${service}   ${ipFamily}   gone\n`;
}

function cells(
  { service, ipFamily, ownership, ownEndpoints, excludedEndpoints, why, learnedFrom = [], podNetwork }: OwnershipRow,
  style: Style,
): string[] {
  const objects = learnedFrom.flatMap((one) => one.objects);
  const source = objects.length === 0 ? "" : ` (${named(objects)})`;
  const owner = { ours: style.good, mixed: style.warn, foreign: style.dim }[ownership]?.(ownership) ?? ownership;
  return [
    service,
    ipFamily,
    owner,
    String(ownEndpoints),
    String(excludedEndpoints),
    `${why}${source}${placeText(podNetwork)}`,
  ];
}

/** Where its pods really are; `fairlead explain` says more. */
function placeText(network: OwnershipRow["podNetwork"]): string {
  if (network === undefined) return "";
  const { kind, name, addresses } = network;
  const at = addresses === undefined ? "" : `: ${named(addresses)}`;
  return `; its pods are in ${kind} ${name}${at}`;
}

/** Many objects may say one CIDR. */
function named(objects: readonly string[]): string {
  return firstOf(objects, 3);
}
