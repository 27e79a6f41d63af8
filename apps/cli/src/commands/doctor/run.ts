/** `doctor`: what keeps a service proxy from working, and what to do. */

import { hostname } from "node:os";
import type { NodeState as ClusterNode } from "@fairlead/core";
import { type Diagnosis, diagnose, type NodeState } from "@fairlead/inspect";
import type { doctorOptions } from "../../facts/nodes.ts";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { print } from "../../frame/output.ts";
import type { Style } from "../../frame/terminal.ts";
import { counted, verdictText } from "../../frame/text.ts";
import { demandReadable, warnOfUnlearned } from "../../inputs/agent.ts";
import { configurationOf, sayConfiguration } from "../../inputs/configuration.ts";
import { allNodes } from "../../inputs/source.ts";
import { runnerFor, stateOf } from "../../node/access.ts";
import { apiFacts } from "./api.ts";
import { clusterFacts } from "./cluster.ts";
import { nodeFacts } from "./facts.ts";

export async function run({ options }: CommandInput<typeof doctorOptions>, context: Context): Promise<ExitCode> {
  const { on } = options;
  const here = on === undefined;
  const values = { ...options, file: [], node: undefined, "node-address": [], memory: undefined };
  const configured = await configurationOf(values, { on, here }, context, { anyMode: true, lenient: true });
  sayConfiguration(configured, context);
  const { setup, running } = configured;
  demandReadable(setup.mode);
  const api = await context.progress("asking the API server", () => apiFacts(options, context));
  if (api.kind !== "answers") warnOfUnlearned(setup, context);
  const cluster = api.kind === "answers" ? await clusterFacts(setup, options, context) : undefined;
  const runner = await runnerFor(options, context);
  const facts = await context.progress(`looking at ${on ?? "this node"}`, async () => {
    const more = { serviceCIDRs: options["service-cidr"], api, cluster, here, running };
    const state = await stateOf(options, context);
    if (here && api.kind === "answers") await warnOfNoNode(values, state, context);
    return nodeFacts(setup, more, state, runner);
  });
  const diagnoses = diagnose(facts);
  await print(
    options.output,
    diagnoses,
    () => [...diagnoses.map((one) => diagnosisText(one, context.style)), verdictOf(diagnoses, context)].join(""),
    context,
  );
  return diagnoses.some(({ state }) => state === "bad") ? 1 : 0;
}

function verdictOf(diagnoses: readonly Diagnosis[], { style }: Context): string {
  const count = (of: Diagnosis["state"]) => diagnoses.filter(({ state }) => state === of).length;
  const [bad, warnings, unknown] = [count("bad"), count("warning"), count("unknown")];
  const rest = [
    ...(warnings > 0 ? [counted(warnings, "warning")] : []),
    ...(unknown > 0 ? [`${unknown} unknown`] : []),
  ];
  const checks = counted(diagnoses.length, "check");
  const what = [bad > 0 ? `${bad} of ${checks} bad` : checks, ...rest].join(", ");
  return verdictText(bad === 0, what, "do what → says below each ✗, and run it again", style);
}

/** A laptop's sysctls say nothing about a cluster. */
async function warnOfNoNode(
  options: Parameters<typeof allNodes>[0],
  { addresses = [] }: NodeState,
  context: Context,
): Promise<void> {
  // What may not be listed is not known.
  const nodes = await allNodes(options, context).catch(() => new Map<string, ClusterNode>());
  const own = new Set(addresses.map(({ address }) => address));
  const isOwn = ({ addresses: its }: ClusterNode) => its.some((address) => own.has(address));
  if (nodes.size === 0 || nodes.has(hostname().toLowerCase()) || [...nodes.values()].some(isOwn)) return;
  const names = [...nodes.keys()].join(", ");
  context.warn(
    `this host is not a Node of the cluster, and what follows is about this host: give --on NODE; there are: ${names}`,
  );
}

function diagnosisText({ check, state, found, advice }: Diagnosis, style: Style): string {
  const signs = { good: style.good("✓"), warning: style.warn("!"), bad: style.bad("✗"), unknown: style.warn("?") };
  const what = advice === undefined ? "" : `\n    ${style.bold("→")} ${advice}`;
  return `${signs[state]} ${check}: ${found}${what}\n`;
}
