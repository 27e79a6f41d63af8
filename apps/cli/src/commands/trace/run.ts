import { createTracer, type Environment, type Exploration } from "@fairlead/trace";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { UsageError } from "../../frame/errors.ts";
import { oneKernel, runnerFor } from "../../node/access.ts";
import { liveEnvironment } from "../../node/environment.ts";
import { readRules } from "../../node/rules.ts";
import { print } from "../../output/output.ts";
import { knownOf } from "./known.ts";
import type { traceOptions } from "./options.ts";
import { readDestination, readPacket, withFacts } from "./packet.ts";
import { answerData, answerText } from "./show.ts";
import { watch } from "./watch.ts";

export async function run({ options }: CommandInput<typeof traceOptions>, context: Context): Promise<ExitCode> {
  oneKernel(options);
  const destination = readDestination(options);
  const live = options.rules === undefined;
  if (options.watch && (options.rules ?? options.on) !== undefined) {
    throw new UsageError("--watch follows packets of this host: leave out --rules and --on");
  }
  const runner = await runnerFor(options, context);
  const host: Environment = live ? await liveEnvironment(runner, destination.family) : {};
  const environment = withFacts(options, destination.family, host);
  const asked = readPacket(options, destination, environment);
  if (options.watch) return watch(asked, options, { ...context, runner });
  const rules = await readRules(options.rules, destination.family, runner, context);
  const known = live ? await knownOf(runner, asked, options.sport !== undefined) : { packet: asked, connections: [] };
  const exploration = createTracer(rules).explore(known.packet, environment);
  const answer = { ...known, exploration };
  await print(
    options.output,
    answerData(answer, rules),
    () => answerText(answer, rules, !live, context.style),
    context,
  );
  return arrives(exploration) ? 0 : 1;
}

function arrives({ outcomes, undecided }: Exploration): boolean {
  return undecided.length === 0 && outcomes.every(({ verdict }) => verdict === "accept");
}
