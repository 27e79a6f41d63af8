import type { ForwardingPlan, IPFamily } from "@fairlead/core";
import { dryRun, planData } from "@fairlead/inspect";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { demandServices, type Plans, plansIn } from "../../inputs/namespaces.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { print } from "../../output/output.ts";
import type { planOptions } from "./options.ts";
import { rulesText } from "./rules-text.ts";
import { summaryText } from "./summary.ts";

export async function run({ options }: CommandInput<typeof planOptions>, context: Context): Promise<ExitCode> {
  const { planned, setup } = await plannedNode(options, context);
  const { output, namespace } = options;
  demandServices(namespace, [planned.state], "planned");
  if (![...planned.state.keys()].some((key) => planned.state.service(key) !== undefined)) {
    const from = options.file.length > 0 ? `-f ${options.file.join(", ")}` : "the cluster";
    context.warn(`${from} has no usable Service: this is what a node has without any`);
  }
  const plans = plansIn(namespace, planned);
  if (output === "rules") await printRules(plans, setup, options, context);
  else if (output === "summary") context.out(summaryText(plans));
  else await print(output, planData(plans), () => "", context);
  return 0;
}

type RulesOptions = Pick<CommandInput<typeof planOptions>["options"], "family" | "without-counters">;

async function printRules(
  { planner, mode }: Plans,
  { config }: AgentSetup,
  options: RulesOptions,
  context: Context,
): Promise<void> {
  const [family, other]: readonly [IPFamily, IPFamily] =
    options.family === "ipv4" ? ["IPv4", "IPv6"] : ["IPv6", "IPv4"];
  const texts = await dryRun(planner.plan(family), { mode, config, counters: !options["without-counters"] });
  context.out(rulesText(texts));
  const left = services(planner.plan(other));
  if (left > 0) {
    context.warn(
      `${left} ${left === 1 ? "service" : "services"} of ${other} left out: --family ${other.toLowerCase()}`,
    );
  }
}

function services({ groups }: ForwardingPlan): number {
  return new Set(Array.from(groups.values(), ({ service }) => service)).size;
}
