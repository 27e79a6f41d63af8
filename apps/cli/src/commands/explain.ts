/** `explain`: which proxy serves a service on a node, where, by which endpoints, and why. */

import { NETWORKS_MANAGER, socketText } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import {
  type EndpointFate,
  type IPFamily,
  type Membership,
  type ServiceKey,
  type ServicePortGroup,
  splitKey,
  type Treatment,
} from "@fairlead/core";
import {
  type Agreement,
  agreementOf,
  explainService,
  type FamilyExplanation,
  type FrontendExplanation,
  factsOf,
  fastPathOnNode,
  findTarget,
  type LostFrontend,
  type ModeChange,
  type ModeFinding,
  modeChange,
  type OutcomeShares,
  type PacketFinding,
  type PlannedNode,
  type Policies,
  type PortExplanation,
  type ServiceExplanation,
  type ServiceNotice,
  type Target,
  waysText,
} from "@fairlead/inspect";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { explainOptions } from "../facts/plans.ts";
import type { CommandInput, ExitCode } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { print } from "../frame/output.ts";
import type { Style } from "../frame/terminal.ts";
import { findingsText, firstOf, gatewayText, tableText } from "../frame/text.ts";
import { demandReadable } from "../inputs/agent.ts";
import { namespaceOf } from "../inputs/cluster-access.ts";
import { servicesLike, targetOf } from "../inputs/names.ts";
import { type PlannedSetup, plannedNode } from "../inputs/planned.ts";
import { whyNotProxied } from "../inputs/source.ts";
import { type NodeKernel, openKernel } from "../node/access.ts";
import { fromSysdump } from "../sysdump/dump.ts";
import { explainGateway } from "./explain-gateway.ts";

type Input = CommandInput<typeof explainOptions>;

export async function run(input: Input, around: Context): Promise<ExitCode> {
  const { arguments: args, options: given } = input;
  const [text = ""] = args;
  if (args.length > 1) return explainGateway(input, around);
  const { options, context } = await fromSysdump(given, around);
  const target = targetOf(text, await namespaceOf(options, context));
  const kernel = await openKernel(options, context);
  const node = options.node ?? options.on;
  const values = { ...options, node };
  const proxy = { on: options.on, here: options.live };
  const now = await plannedNode(values, context, { proxy, live: kernel?.addresses, about: target });
  const { setup } = now;
  if (kernel !== undefined || options["to-mode"] !== undefined) demandReadable(now.planned.mode);
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
    ...(serviceNetwork && { slicesManagedBy: NETWORKS_MANAGER }),
  };
  return { ...explanation, ...instance, kernel, ...(change && { change }) };
}

function explanationText(
  { service, gateway, node, zone, mode, notices, families }: ServiceExplanation,
  agreements: readonly FamilyAgreement[],
  instance: Pick<AgentConfig, "serviceNetwork" | "serviceProxyName">,
  style: Style,
): string {
  const place = zone === undefined ? node : `${node} (zone ${zone})`;
  const owner = gateway === undefined ? "" : `${gatewayText(gateway)}\n`;
  const title = `${style.bold(service)} on ${place}, ${mode} mode\n${owner}`;
  const parts = families.map((one) => {
    const agreement = agreements.find(({ family }) => family === one.family);
    return familyText(one, style) + (agreement === undefined ? "" : agreementText(agreement, style));
  });
  return [title + instanceText(instance) + notices.map((one) => noticeText(one, style)).join(""), ...parts].join("\n");
}

function noticeText({ object, field, value, reason, effect }: ServiceNotice, style: Style): string {
  const sign = { lost: style.bad("traffic lost"), open: style.bad("open"), note: style.warn("note") }[effect];
  return `${sign}: ${[object, field, value, reason].filter(Boolean).join(" ")}\n`;
}

/** Nothing of the first proxy, which most services belong to. */
function instanceText({ serviceProxyName, serviceNetwork }: Parameters<typeof explanationText>[2]): string {
  if (serviceProxyName === "") return "";
  const slices = `; endpoints on pods' secondary networks, from EndpointSlices of ${NETWORKS_MANAGER} only`;
  return `Served by instance ${serviceProxyName}${serviceNetwork ? slices : ""}\n`;
}

function familyText(explained: FamilyExplanation, style: Style): string {
  const { family, ownership, remembered, podNetwork, policies, ports } = explained;
  const owner = { ours: style.good, mixed: style.warn, foreign: style.dim }[ownership.ownership](ownership.ownership);
  const memory = remembered === undefined ? "" : `; remembered as ${remembered}`;
  const head = `${family}: ${owner}, ${ownership.why}${memory}\n${placeText(podNetwork)}${policiesText(policies)}\n`;
  return [head, ...ports.map((port) => portText(port, style))].join("\n");
}

function placeText(network: FamilyExplanation["podNetwork"]): string {
  if (network === undefined) return "";
  const { kind, name, addresses, why } = network;
  const at = addresses === undefined ? "" : `, at ${firstOf(addresses, 3)}`;
  return `Its pods are in ${kind} ${name}${at} (${why})\n`;
}

function policiesText(policies: Policies): string {
  const { internalTrafficPolicy, externalTrafficPolicy, affinitySeconds, loadBalancerSourceRanges } = policies;
  const { nodePortAddresses, nodePortSourceRanges, refusesWithoutLocal, healthCheck } = policies;
  const parts = [
    `internal ${internalTrafficPolicy}`,
    `external ${externalTrafficPolicy}`,
    ...(affinitySeconds === undefined ? [] : [`ClientIP affinity for ${affinitySeconds} s`]),
    ...(loadBalancerSourceRanges.length === 0 ? [] : [`load balancer for ${loadBalancerSourceRanges.join(", ")} only`]),
    ...(nodePortAddresses === undefined ? [] : [nodePortsText("on", nodePortAddresses.addresses, nodePortAddresses)]),
    ...(nodePortSourceRanges === undefined
      ? []
      : [nodePortsText("for", nodePortSourceRanges.ranges, nodePortSourceRanges)]),
    ...(refusesWithoutLocal ? ["clients are refused where Local finds no endpoint"] : []),
    ...(healthCheck === undefined
      ? []
      : [`health check on ${healthCheck.port}: ${healthCheck.localEndpoints} ready here`]),
  ];
  return `Traffic policies: ${parts.join("; ")}`;
}

function nodePortsText(where: "on" | "for", all: readonly string[], { why }: { readonly why?: string }): string {
  if (all.length > 0) return `node ports ${where} ${all.join(", ")} only`;
  return `node ports ${where === "on" ? "on no address" : "for no client"}${why === undefined ? "" : ` (${why})`}`;
}

function portText(port: PortExplanation, style: Style): string {
  const { name, protocol, route, frontends, unserved, lost, endpoints } = port;
  const of = route === undefined ? "" : `, of ${route}`;
  const title = style.bold(`${protocol}${name === "" ? "" : ` port ${name}`}`) + of;
  const counts = { cluster: members(endpoints, "cluster"), local: members(endpoints, "local") };
  const rows = [
    ...frontends.map((one) => frontendRow(one, counts, unserved)),
    ...loopbackRows(port, counts),
    ...lost.map(lostRow),
  ];
  const served = indent(tableText(["frontend", "pods", "node", "outside"], rows));
  const head = ["endpoint", "node", "cluster set", "local set"];
  const ends = indent(
    tableText(
      head,
      endpoints.map((one) => endpointRow(one, style)),
    ),
  );
  return `${title}\n${served}${distributionText(port)}${fastPathText(port)}${refusedText(port)}${endpoints.length === 0 ? "  no endpoints\n" : ends}`;
}

type Counts = Readonly<Record<"cluster" | "local", number>>;

function members(endpoints: readonly EndpointFate[], set: "cluster" | "local"): number {
  return endpoints.filter((one) => one[set].in).length;
}

function frontendRow(frontend: FrontendExplanation, counts: Counts, unserved: string | undefined): string[] {
  const { kind, address, port, policy, treatments, excludedClients } = frontend;
  const { pod, node, outside } = treatments;
  const name = `${kind} ${address === undefined ? port : socketText(address, port)}${policy === "Cluster" ? "" : ` (${policy})`}`;
  return [
    `${name}${exceptionText(excludedClients)}`,
    ...[pod, node, outside].map((treatment) => treatmentText(treatment, counts, unserved)),
  ];
}

function distributionText({ distribution }: PortExplanation): string {
  return distribution === undefined ? "" : `  traffic distribution ${distribution.asked}: ${distribution.why}\n`;
}

function fastPathText({ fastPath }: PortExplanation): string {
  return fastPath === undefined ? "" : `  fast path: ${fastPath.used ? "" : "no, "}${fastPath.why}\n`;
}

function refusedText({ refused = {} }: PortExplanation): string {
  const parts = Object.entries(refused).map(
    ([set, part]) => `${Number((100 * part).toPrecision(3))} % of the ${set} set`,
  );
  return parts.length === 0 ? "" : `  refused by weight: ${parts.join(", ")}\n`;
}

/** Only the node itself reaches its loopback addresses. */
function loopbackRows({ onLoopback }: PortExplanation, counts: Counts): string[][] {
  if (onLoopback === undefined) return [];
  const what =
    onLoopback === "refused" ? onLoopback : `${counts[onLoopback.relayedTo]} ${onLoopback.relayedTo}, relayed`;
  return [["the node port on loopback", "-", what, "-"]];
}

/** `, but for clients in 10.244.0.0/16`: their own network serves these. */
function exceptionText(cidrs: readonly string[] = []): string {
  return cidrs.length === 0 ? "" : `, but for clients in ${firstOf(cidrs, 1)}`;
}

function treatmentText(treatment: Treatment, counts: Counts, unserved: string | undefined): string {
  if (treatment.verdict === "leave") return "left to the other network";
  if (treatment.verdict !== "proxy") return unserved ?? treatment.verdict;
  return `${counts[treatment.set]} ${treatment.set}${treatment.masquerade ? ", masqueraded" : ""}`;
}

function lostRow({ kind, address, port, heldBy }: LostFrontend): string[] {
  const name = `${kind} ${address === undefined ? port : socketText(address, port)}`;
  const holder = heldBy === undefined ? "not served here" : `held by ${heldBy}`;
  return [name, holder, holder, holder];
}

function endpointRow({ address, port, nodeName, cluster, local }: EndpointFate, style: Style): string[] {
  return [socketText(address, port), nodeName ?? "-", membershipText(cluster, style), membershipText(local, style)];
}

function membershipText({ in: inside, why }: Membership, style: Style): string {
  return inside ? `${style.good("in")}: ${why}` : `${style.dim("out")}: ${why}`;
}

function agreementText({ agreement }: FamilyAgreement, style: Style): string {
  const { checked, disagreements, unknown } = agreement;
  const kinds = `${checked} ${checked === 1 ? "kind" : "kinds"} of packets traced`;
  const open = unknown.length === 0 ? "" : `; ${style.warn("unknown")} for ${unknown.length} of them`;
  const lines = [...disagreements, ...unknown].map((one) => `  ${findingText(one)}\n`).join("");
  if (disagreements.length > 0) {
    const differs = `${style.bad("does something else")} with ${disagreements.length} of ${kinds}`;
    return `\nKernel: ${differs}${open}\n${lines}`;
  }
  const agrees = unknown.length < checked || checked === 0 ? `${style.good("agrees")}, ${kinds}` : kinds;
  return `\nKernel: ${agrees}${open}\n${lines}`;
}

function findingText({ frontend, source, wanted, found, problem }: PacketFinding): string {
  const to = `${frontend.kind} ${socketText(frontend.address, frontend.port)}`;
  const seen = found === undefined ? `unknown: ${problem}` : `goes to ${waysText(found)}`;
  return `${source.class} (${source.address}) → ${to}: ${seen}; wanted: ${waysText(wanted)}`;
}

function findingData({ frontend, source, wanted, found, problem }: PacketFinding) {
  const ways = (of: OutcomeShares) => Object.fromEntries(of);
  return {
    frontend,
    source,
    wanted: ways(wanted),
    ...(found === undefined ? { problem: problem ?? "" } : { found: ways(found) }),
  };
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}

interface FamilyAgreement {
  readonly family: IPFamily;
  readonly agreement: Agreement;
  /** The kernel's tables of nftables alongside those of iptables. */
  readonly nftables: readonly NftTable[];
}
