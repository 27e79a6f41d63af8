/** `plan`: what the agent would program. */

import { familyOf, IP_FAMILIES, socketText } from "@fairlead/base";
import type { ForwardingPlan, Frontend, IPFamily, ServicePortGroup } from "@fairlead/core";
import { dryRun, type ProgramText, planData, unservedIn, whyUnwritten } from "@fairlead/inspect";
import type { planOptions } from "../facts/plans.ts";
import type { CommandInput, ExitCode } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure } from "../frame/errors.ts";
import { print } from "../frame/output.ts";
import { firstOf, tableText } from "../frame/text.ts";
import type { AgentSetup } from "../inputs/agent.ts";
import { demandServices, type Plans, plansIn } from "../inputs/names.ts";
import { plannedNode } from "../inputs/planned.ts";
import { allNodes } from "../inputs/source.ts";

export async function run({ options }: CommandInput<typeof planOptions>, context: Context): Promise<ExitCode> {
  const { planned, setup } = await plannedNode(options, context);
  const { output, namespace } = options;
  demandServices(namespace, [planned.state], "planned");
  if (![...planned.state.keys()].some((key) => planned.state.service(key) !== undefined)) {
    const from = options.file.length > 0 ? `-f ${options.file.join(", ")}` : "the cluster";
    context.warn(`${from} has no usable Service: this is what a node has without any`);
  }
  const plans = plansIn(namespace, planned);
  if (output === "rules") await printRules(plans, planned.nodeName, setup, options, context);
  else if (output === "summary") context.out(summaryText(plans));
  else await print(output, planData(plans), () => "", context);
  return 0;
}

type PlanOptions = CommandInput<typeof planOptions>["options"];

async function printRules(
  { planner, mode }: Plans,
  nodeName: string,
  { config }: AgentSetup,
  options: PlanOptions,
  context: Context,
): Promise<void> {
  const [family, other]: readonly [IPFamily, IPFamily] =
    options.family === "ipv4" ? ["IPv4", "IPv6"] : ["IPv6", "IPv4"];
  const counters = !options["without-counters"];
  const here = { mode, config, counters };
  const settings =
    whyUnwritten(mode, here) === undefined
      ? here
      : { ...here, nodes: await nodesOf(nodeName, family, options, context) };
  const unknown = whyUnwritten(mode, settings);
  if (unknown !== undefined)
    throw new CommandFailure(`--output=rules in ${mode} mode: ${unknown}; use another --output`);
  if (settings !== here)
    context.warn(
      "the routes of the overlay are taken from the Nodes' spec.podCIDRs; those of the node's HCN network count",
    );
  const texts = await dryRun(planner.plan(family), settings);
  context.out(rulesText(texts));
  const left = services(planner.plan(other));
  if (left > 0) {
    context.warn(
      `${left} ${left === 1 ? "service" : "services"} of ${other} left out: --family ${other.toLowerCase()}`,
    );
  }
}

async function nodesOf(nodeName: string, family: IPFamily, options: PlanOptions, context: Context) {
  const nodes = await allNodes(options, context);
  const others = [...nodes].flatMap(([name, node]) => (name === nodeName ? [] : [node]));
  return { own: nodes.get(nodeName)?.addresses.find((address) => familyOf(address) === family), others };
}

function services({ groups }: ForwardingPlan): number {
  return new Set(Array.from(groups.values(), ({ service }) => service)).size;
}

/**
 * What the programs get, each part under a comment with the command that takes it. All of them pass over such comments,
 * `ip -batch` too, so that a single part can be piped as it is.
 */
export function rulesText(texts: readonly ProgramText[]): string {
  return texts
    .map(({ argv, pieces }) => {
      const text = pieces.join("");
      return `# ${argv.join(" ")}${needs(text)}\n${text}`;
    })
    .join("");
}

/** Rules may count with named counters, which iptables-restore does not make. */
function needs(text: string): string {
  const names = new Set([...text.matchAll(/--nfacct-name +(\S+)/g)].map((found) => found[1]));
  return [...names].map((name) => `\n# needs: nfacct add ${name}`).join("");
}

/** One row for each service port that is programmed, and one for each service that is left to another network. */
function summaryText({ planner, mode }: Plans): string {
  const unserved = unservedIn(mode);
  const row = (group: ServicePortGroup) => groupRow(group, unserved);
  const rows = IP_FAMILIES.flatMap((family) => [...planner.plan(family).groups.values()].map(row));
  const foreign = [...planner.ownerships()].filter(({ decision }) => decision.frontends === "none");
  const left = foreign.map(({ service, family, decision }) => [service, family, "-", "-", "-", decision.why]);
  const head = ["service", "family", "frontends", "cluster", "local", "remark"];
  return tableText(head, [...rows, ...left].sort(byCells));
}

function groupRow(group: ServicePortGroup, unserved: string | undefined): string[] {
  const { name, family, frontends, cluster, local } = group;
  const counts = [cluster, local].map(({ length }) => String(length));
  return [name, family, frontends.map(frontendText).join(" "), ...counts, remark(group, unserved)];
}

function frontendText({ address, port, kind }: Frontend): string {
  if (address === undefined) return `node-port:${port}`;
  return `${kind === "cluster-ip" ? "" : `${kind}:`}${socketText(address, port)}`;
}

function remark({ frontends, affinitySeconds }: ServicePortGroup, unserved: string | undefined): string {
  const verdicts = new Set(
    frontends.flatMap(({ treatments }) => Object.values(treatments).map(({ verdict }) => verdict)),
  );
  const refused = (["reject", "drop"] as const).filter((verdict) => verdicts.has(verdict));
  const excluded = frontends.flatMap(({ excludedClients = [] }) => excludedClients);
  return [
    ...(unserved === undefined || refused.length === 0 ? refused : [unserved]),
    ...(excluded.length === 0 ? [] : [`left to another network for clients in ${firstOf(excluded, 1)}`]),
    ...(affinitySeconds === undefined ? [] : [`affinity ${affinitySeconds} s`]),
  ].join(", ");
}

function byCells(a: readonly string[], b: readonly string[]): number {
  const [left, right] = [a.join("\0"), b.join("\0")];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
