import { SLICES_MANAGER } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import { type IPFamily, type ServiceKey, type ServicePortGroup, splitKey } from "@fairlead/core";
import {
  agreementOf,
  explainService,
  factsOf,
  fastPathOnNode,
  findTarget,
  type ModeChange,
  type ModeFinding,
  modeChange,
  type PlannedNode,
  type ServiceExplanation,
  type Target,
} from "@fairlead/inspect";
import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure } from "../../frame/errors.ts";
import type { Style } from "../../frame/style.ts";
import { namespaceOf } from "../../inputs/cluster-access.ts";
import { type PlannedSetup, plannedNode } from "../../inputs/planned.ts";
import { servicesLike } from "../../inputs/services-like.ts";
import { whyNotProxied } from "../../inputs/source.ts";
import { targetOf } from "../../inputs/target.ts";
import { type NodeKernel, openKernel } from "../../node/access.ts";
import { findingsText } from "../../output/findings.ts";
import { print } from "../../output/output.ts";
import { fromSysdump } from "../../sysdump/dump.ts";
import type { FamilyAgreement } from "./family-agreement.ts";
import type { explainOptions } from "./options.ts";
import { explanationText, findingData } from "./text.ts";

type Input = CommandInput<typeof explainOptions>;

export async function run({ arguments: [text = ""], options: given }: Input, around: Context): Promise<ExitCode> {
  const { options, context } = await fromSysdump(given, around);
  const target = targetOf(text, await namespaceOf(options, context));
  const kernel = await openKernel(options, context);
  const node = options.node ?? options.on;
  const values = { ...options, node };
  const proxy = { on: options.on, here: options.live };
  const now = await plannedNode(values, context, { proxy, live: kernel?.addresses, about: target });
  const { setup } = now;
  const change = changeOf(now, options, kernel);
  const { planned } = change?.after ?? now;
  demandPort(planned, target, text);
  const explained = findTarget(planned, target).flatMap(
    ({ service, port }) => explainService(planned, service, port) ?? [],
  );
  if (explained.length === 0)
    throw new CommandFailure(`${text}: ${await whyNothing(target, setup.config, values, context)}`);
  const answers: Answer[] = [];
  for (const explanation of explained) {
    const agreements = kernel === undefined ? [] : await compare(now.planned, explanation, kernel);
    const tablesOf = (family: IPFamily) => agreements.find((one) => one.family === family)?.nftables;
    answers.push({
      explanation: fastPathOnNode(explanation, tablesOf),
      agreements,
      ...(change && { change: findingsOf(explanation.service, change) }),
    });
  }
  const data = answers.map((one) => dataOf(one, setup.config));
  // An address can be several services'; whatever else is asked for is one.
  await print(
    options.output,
    target.kind === "host" ? data : data[0],
    () => answers.map((one) => answerText(one, now, context.style)).join("\n"),
    context,
  );
  return data.some(({ kernel: found }) => found.some(({ disagreements }) => disagreements.length > 0)) ? 1 : 0;
}

/** @throws CommandFailure where the service is there, and has no such port */
function demandPort({ state }: PlannedNode, target: Target, text: string): void {
  if (target.kind !== "service" || target.port === undefined) return;
  const ports = state.service(target.service)?.ports;
  if (ports === undefined || ports.some(({ name, port }) => name === target.port || String(port) === target.port)) {
    return;
  }
  const names = ports.map(({ name, port, protocol }) => `${name === "" ? port : name} (${port}/${protocol})`);
  throw new CommandFailure(`${text}: ${target.service} has no port ${target.port}; it has: ${names.join(", ")}`);
}

interface Answer {
  readonly explanation: ServiceExplanation;
  /** Of the kernel with the mode of now. */
  readonly agreements: readonly FamilyAgreement[];
  /** What changes with the mode that is asked for; absent: none is. */
  readonly change?: readonly ModeFinding[];
}

function changeOf(
  { planned, setup, planIn }: PlannedSetup,
  { "to-mode": mode }: Input["options"],
  kernel: NodeKernel | undefined,
): ModeChange | undefined {
  if (mode === undefined) return undefined;
  const { addresses } = kernel ?? {};
  return { before: { planned, config: setup.config }, after: planIn(mode), seen: { ...(addresses && { addresses }) } };
}

/** What is about the service, or about all. */
function findingsOf(service: ServiceKey, change: ModeChange): readonly ModeFinding[] {
  return modeChange(change).filter(({ services }) => services === undefined || services.includes(service));
}

function answerText(
  { explanation, agreements, change }: Answer,
  { planned, setup }: Pick<PlannedSetup, "planned" | "setup">,
  style: Style,
): string {
  const text = explanationText(explanation, agreements, setup.config, style);
  if (change === undefined) return text;
  return `${text}\n${style.bold(`What changes from ${planned.mode} mode:`)}\n${findingsText(change, style)}`;
}

async function whyNothing(
  target: Target,
  { serviceProxyName }: Pick<AgentConfig, "serviceProxyName">,
  options: Input["options"],
  context: Context,
): Promise<string> {
  if (target.kind === "host") return "no service and no endpoint has that address";
  if (target.kind === "nodePort") return "no service has that node port";
  if (target.kind === "address") return "no service has that address and port";
  // Standard input was read to its end.
  const left = options.file.includes("-")
    ? undefined
    : await whyNotProxied(splitKey(target.service), serviceProxyName, options, context);
  if (left !== undefined) return left;
  const why = "there is no such Service with a ClusterIP (headless and ExternalName services are not proxied)";
  return why + (await servicesLike(target.service, options, context));
}

async function compare(
  { planner, options, mode }: PlannedNode,
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
    const agreement = agreementOf(own, node, state, nodeAddress, factsOf(mode).semantics);
    found.push({ family, agreement, nftables: state.nftables ?? [] });
  }
  return found;
}

function dataOf({ explanation, agreements, change }: Answer, { serviceProxyName, serviceNetwork }: AgentConfig) {
  const kernel = agreements.map(({ family, agreement: { checked, disagreements, unknown } }) => {
    return {
      family,
      checked,
      disagreements: disagreements.map(findingData),
      unknown: unknown.map(findingData),
    };
  });
  const instance = {
    ...(serviceProxyName !== "" && { serviceProxyName }),
    ...(serviceNetwork && { slicesManagedBy: SLICES_MANAGER }),
  };
  return { ...explanation, ...instance, kernel, ...(change && { change }) };
}
