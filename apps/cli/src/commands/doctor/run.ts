import { type Diagnosis, diagnose } from "@fairlead/inspect";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import type { Style } from "../../frame/style.ts";
import { warnOfUnlearned } from "../../inputs/agent.ts";
import { configurationOf, sayConfiguration } from "../../inputs/configuration.ts";
import { runnerFor, stateOf } from "../../node/access.ts";
import { print } from "../../output/output.ts";
import { apiFacts } from "./api.ts";
import { nodeFacts } from "./facts.ts";
import { isolatedServices } from "./isolated.ts";
import { clusterNetworks } from "./networks.ts";
import type { doctorOptions } from "./options.ts";

export async function run({ options }: CommandInput<typeof doctorOptions>, context: Context): Promise<ExitCode> {
  const { on } = options;
  const here = on === undefined;
  const values = { ...options, file: [], node: undefined, "node-address": [], memory: undefined };
  const configured = await configurationOf(values, { on, here }, context, { anyMode: true, lenient: true });
  sayConfiguration(configured, context);
  const { setup, running } = configured;
  const api = await context.progress("asking the API server", () => apiFacts(options, context));
  if (api.kind !== "answers") warnOfUnlearned(setup, context);
  const networks = api.kind === "answers" ? await clusterNetworks(setup, options, context) : undefined;
  const isolated = api.kind === "answers" ? await isolatedServices(setup, options, context) : undefined;
  const runner = await runnerFor(options, context);
  const facts = await context.progress(`looking at ${on ?? "this node"}`, async () => {
    const more = { serviceCIDRs: options["service-cidr"], api, networks, here, running };
    return nodeFacts(setup, more, await stateOf(options, context), runner);
  });
  const diagnoses = diagnose({ ...facts, ...(isolated && { isolated }) });
  await print(
    options.output,
    diagnoses,
    () => diagnoses.map((one) => diagnosisText(one, context.style)).join(""),
    context,
  );
  return diagnoses.some(({ state }) => state === "bad") ? 1 : 0;
}

function diagnosisText({ check, state, found, advice }: Diagnosis, style: Style): string {
  const signs = { good: style.good("✓"), warning: style.warn("!"), bad: style.bad("✗"), unknown: style.warn("?") };
  const what = advice === undefined ? "" : `\n    ${style.bold("→")} ${advice}`;
  return `${signs[state]} ${check}: ${found}${what}\n`;
}
