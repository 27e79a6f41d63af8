import { followOwnership, type SuggestedCIDR, suggestCIDRs } from "@fairlead/inspect";
import { type OwnershipRow, ownershipReport } from "@fairlead/intake";
import { readCalls, unanswered } from "../../cluster/called-services.ts";
import { openCluster } from "../../cluster/cluster.ts";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { UsageError } from "../../frame/errors.ts";
import { nodeNameOf } from "../../inputs/api-source.ts";
import { configurationOf, sayConfiguration } from "../../inputs/configuration.ts";
import { liveSource } from "../../inputs/live-source.ts";
import { isIn } from "../../inputs/namespaces.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { agentAddressOf } from "../../node/agent-endpoint.ts";
import { type AgentOwnership, agentOwnership } from "../../node/agent-ownership.ts";
import { printList } from "../../output/output.ts";
import { changeConsent } from "./consent.ts";
import type { ownershipOptions } from "./options.ts";
import { callsText, changeText, goneText, ownershipText } from "./text.ts";

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
  /** What the agent has learned. */
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
  return { ...(await agentOwnership(agentAddressOf(options), context)), suggestedCIDRs: [] };
}

async function report({ output, namespace }: Options, all: Report, context: Context): Promise<void> {
  const found = { ...all, services: all.services.filter(({ service }) => isIn(namespace, service)) };
  if (found.services.length === 0) {
    context.warn(`No services found${namespace === undefined ? "" : ` in ${namespace} namespace`}.`);
  }
  const text = (wide: boolean) => () =>
    `${ownershipText(found.services, found.suggestedCIDRs, context.style, wide)}${callsText(found.unansweredCalls)}`;
  const names = [...new Set(found.services.map(({ service }) => service))];
  await printList(output, found, { wide: text(true), table: text(false), names }, context);
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
