import type { AgentConfig } from "@fairlead/config";
import type { Mode, SeenNode } from "@fairlead/inspect";
import type { CommandInput, ExitCode } from "../../../frame/command.ts";
import type { Context } from "../../../frame/context.ts";
import { type AgentSetup, agentSetup } from "../../../inputs/agent.ts";
import { nodeNameOf } from "../../../inputs/api-source.ts";
import { inMode, setupOf } from "../../../inputs/in-mode.ts";
import { openKernel } from "../../../node/access.ts";
import { agentsOf } from "../../../node/agent-pods.ts";
import { print } from "../../../output/output.ts";
import type { migrateOptions } from "../options.ts";
import { modeReport, type NodeReport } from "./report.ts";
import { seenNodes, thisHost } from "./seen.ts";
import { reportText } from "./text.ts";

type Values = CommandInput<typeof migrateOptions>["options"];

/** What of the cluster is read already. */
interface ReadCluster {
  /** As the nodes' proxies are set up. */
  readonly config: AgentConfig;
  /** Node objects, straight from JSON. */
  readonly nodes: readonly unknown[];
}

/** What a change of the mode means: for all nodes of the cluster, or for the one whose kernel is looked at. */
export interface ModeAnswer {
  readonly from: Mode;
  readonly to: Mode;
  readonly reports: readonly NodeReport[];
}

/**
 * @param read absent: manifests stand in the place of a cluster
 * @throws CommandFailure when objects, kernel or configuration cannot be read
 */
export async function modeAnswer(
  to: Mode,
  options: Values,
  read: ReadCluster | undefined,
  context: Context,
): Promise<ModeAnswer> {
  const before = read === undefined ? agentSetup(given(options), context) : setupOf(read.config);
  const kernel = await openKernel(given(options), context);
  const only = options.on ?? (kernel === undefined ? options.node : nodeNameOf(options));
  const proxies = read && (await seenNodes(read.nodes, agentsOf(options, context), portOf(before), context));
  const seen = new Map<string, SeenNode>(proxies);
  const here = nodeNameOf(options);
  if (options.live) seen.set(here, { ...seen.get(here), ...thisHost(kernel?.addresses ?? []) });
  const addresses = options["node-address"].length > 0 ? options["node-address"] : undefined;
  const asked = only === undefined ? undefined : [only.toLowerCase()];
  // What is only asked before a change is whether a kernel is in its way.
  const nodes = options.apply ? oneOfEachKernel(seen) : asked;
  const request = { before, after: inMode(before, to), seen, nodes, addresses, kernel };
  return { from: before.mode, to, reports: await modeReport(request, options, context) };
}

function oneOfEachKernel(seen: ReadonlyMap<string, SeenNode>): readonly string[] {
  return [...new Map([...seen].map(([name, { kernel }]) => [kernel, name])).values()];
}

/** From manifests only. */
export async function reportMode(to: Mode, options: Values, context: Context): Promise<ExitCode> {
  const answer = await modeAnswer(to, options, undefined, context);
  await print(options.output, dataOf(answer), () => answerText(answer, context), context);
  return exitCodeOf(answer);
}

export function answerText({ from, to, reports }: ModeAnswer, { style }: Context): string {
  return reportText(from, to, reports, style);
}

/** As JSON. */
export function dataOf({ from, to, reports }: ModeAnswer) {
  return { from, to, nodes: reports };
}

/** What differs is what was asked for; what blocks is in the way. */
export function exitCodeOf({ reports }: ModeAnswer): ExitCode {
  return reports.some(({ findings }) => findings.some(({ state }) => state === "blocks")) ? 1 : 0;
}

function portOf({ config }: AgentSetup): number {
  return config.metricsBindAddress.port;
}

/** With what a migration is never about: a second agent, and what one remembers. */
function given(options: Values) {
  return { ...options, "service-proxy-name": undefined, "metrics-port": undefined, memory: undefined };
}
