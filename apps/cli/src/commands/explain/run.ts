import type { ServicePortGroup } from "@fairlead/core";
import {
  type Agreement,
  agreementOf,
  explainService,
  findTarget,
  type PlannedNode,
  parseTarget,
  type ServiceExplanation,
  type Target,
} from "@fairlead/inspect";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { plannedNode } from "../../inputs/planned.ts";
import { type NodeKernel, openKernel } from "../../node/access.ts";
import { print } from "../../output/output.ts";
import type { FamilyAgreement } from "./family-agreement.ts";
import type { explainOptions } from "./options.ts";
import { explanationText, findingData } from "./text.ts";

type Input = CommandInput<typeof explainOptions>;

export async function run({ arguments: [text = ""], options }: Input, context: Context): Promise<ExitCode> {
  const target = targetOf(text);
  const kernel = await openKernel(options, context);
  const node = options.node ?? options.on;
  const { planned } = await plannedNode({ ...options, node }, context, { live: kernel?.addresses, about: target });
  const found = findTarget(planned, target);
  const explanation = found && explainService(planned, found.service, found.port);
  if (explanation === undefined) throw new CommandFailure(`${text}: ${whyNothing(target)}`);
  const agreements = kernel === undefined ? [] : await compare(planned, explanation, kernel);
  const data = {
    ...explanation,
    kernel: agreements.map(({ family, agreement }) => ({ family, ...dataOf(agreement) })),
  };
  await print(options.output, data, () => explanationText(explanation, agreements, context.style), context);
  return agreements.some(({ agreement }) => agreement.disagreements.length > 0) ? 1 : 0;
}

function targetOf(text: string): Target {
  try {
    return parseTarget(text);
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(error.message) : error;
  }
}

function whyNothing(target: Target): string {
  if (target.kind === "address") return "no service has that address and port";
  return "there is no such Service with a ClusterIP (headless and ExternalName services are not proxied)";
}

async function compare(
  { planner, options }: PlannedNode,
  { service, families }: ServiceExplanation,
  kernel: NodeKernel,
): Promise<readonly FamilyAgreement[]> {
  const found: FamilyAgreement[] = [];
  for (const { family } of families) {
    const { groups, node } = planner.plan(family);
    const own = [...groups.values()].filter((group: ServicePortGroup) => group.service === service);
    if (own.length === 0 || !kernel.families.includes(family)) continue;
    const nodeAddress = options.nodeIPs[family];
    const state = await kernel.state(family, Object.values(options.nodeIPs));
    found.push({ family, agreement: agreementOf(own, node, state, nodeAddress) });
  }
  return found;
}

function dataOf({ checked, disagreements }: Agreement) {
  return { checked, disagreements: disagreements.map(findingData) };
}
