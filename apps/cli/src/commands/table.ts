/** Every command: its facts, and the module that carries it out, which is loaded when it is run. */

import {
  completionFacts,
  connectivityFacts,
  consoleFacts,
  migrateFacts,
  sysdumpFacts,
  versionFacts,
  type versionOptions,
} from "../facts/clusters.ts";
import { doctorFacts, flowsFacts, ownershipFacts, statusFacts, topFacts } from "../facts/nodes.ts";
import { diffFacts, explainFacts, planFacts, traceFacts, verifyFacts } from "../facts/plans.ts";
import { type Command, type CommandInput, defineCommand, type ExitCode } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { print } from "../frame/output.ts";
import { version, versionText } from "../version.ts";

/** In the order of help. */
export const COMMANDS: readonly Command[] = [
  defineCommand(planFacts, () => import("./plan.ts")),
  defineCommand(explainFacts, () => import("./explain.ts")),
  defineCommand(diffFacts, () => import("./diff.ts")),
  defineCommand(traceFacts, () => import("./trace/run.ts")),
  defineCommand(verifyFacts, () => import("./verify/run.ts")),
  defineCommand(ownershipFacts, () => import("./ownership.ts")),
  defineCommand(flowsFacts, () => import("./flows.ts")),
  defineCommand(topFacts, async () => ({ run: (await import("./flows.ts")).top })),
  defineCommand(statusFacts, () => import("./status.ts")),
  defineCommand(doctorFacts, () => import("./doctor/run.ts")),
  defineCommand(sysdumpFacts, () => import("./sysdump.ts")),
  defineCommand(connectivityFacts, () => import("./connectivity/run.ts")),
  defineCommand(consoleFacts, () => import("./console.ts")),
  defineCommand(migrateFacts, () => import("./migrate/run.ts")),
  defineCommand(versionFacts, async () => ({ run: printVersion })),
  defineCommand(completionFacts, async () => ({ run: (await import("./completion.ts")).completionRun(COMMANDS) })),
];

async function printVersion({ options }: CommandInput<typeof versionOptions>, context: Context): Promise<ExitCode> {
  await print(options.output, { version }, () => versionText, context);
  return 0;
}
