/**
 * `fairlead migrate --to-mode`: what another mode would treat differently, before anything changes, as data and as
 * text.
 */

import { release } from "node:os";
import { socketText, stringOf, toEnd, valueAt } from "@fairlead/base";
import { type AgentConfig, withMode } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import {
  type BlockedPackets,
  blockedPackets,
  dryTables,
  factsOf,
  type KernelState,
  MODES,
  type Mode,
  type ModeChange,
  type ModeFinding,
  modeChange,
  planNode,
  readersOf,
  type SeenNode,
  waysText,
  withoutProxy,
} from "@fairlead/inspect";
import type { Cluster } from "../../cluster/cluster.ts";
import { NODES, nameOf } from "../../cluster/resources.ts";
import { type migrateOptions, reportOptions } from "../../facts/clusters.ts";
import type { sourceOptions } from "../../facts/options.ts";
import type { CommandInput, ExitCode, OptionValues } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { UsageError } from "../../frame/errors.ts";
import { print } from "../../frame/output.ts";
import { findingsText, firstOf } from "../../frame/text.ts";
import { type AgentSetup, agentSetup, demandReadable, inMode, setupOf } from "../../inputs/agent.ts";
import { nodeNameOf } from "../../inputs/cluster-access.ts";
import { configurationOf, sayConfiguration } from "../../inputs/configuration.ts";
import { allNodes, clusterNow } from "../../inputs/source.ts";
import { rememberedOptions } from "../../migrate/state.ts";
import type { Survey } from "../../migrate/survey.ts";
import { type NodeKernel, openKernel } from "../../node/access.ts";
import { agentPages, eachNode, type ProxyAccess, proxyIn } from "../../node/agent-endpoint.ts";
import { type Agents, agentPods, agentsOf } from "../../node/agent-pods.ts";

interface NodeReport {
  readonly node: string;
  readonly findings: readonly ModeFinding[];
}

/** What a change of the mode means: for all nodes of the cluster, or for the one whose kernel is looked at. */
export interface ModeAnswer {
  readonly from: Mode;
  readonly to: Mode;
  readonly reports: readonly NodeReport[];
}

type Values = CommandInput<typeof migrateOptions>["options"];

interface ReadCluster {
  /** As the nodes' proxies are set up. */
  readonly config: AgentConfig;
  /** Node objects, straight from JSON. */
  readonly nodes: readonly unknown[];
}

/** @param read absent: manifests stand in the place of a cluster */
export async function modeAnswer(
  to: Mode,
  options: Values,
  read: ReadCluster | undefined,
  context: Context,
): Promise<ModeAnswer> {
  const before = read === undefined ? agentSetup(given(options), context) : setupOf(read.config);
  demandReadable(before.mode);
  const kernel = await openKernel(given(options), context);
  const only = options.on ?? (kernel === undefined ? options.node : nodeNameOf(options));
  const proxies =
    read && (await seenNodes(read.nodes, agentsOf(options, context), before.config.metricsBindAddress.port, context));
  const seen = new Map<string, SeenNode>(proxies);
  const here = nodeNameOf(options);
  if (options.live) seen.set(here, { ...seen.get(here), kernel: release(), addresses: kernel?.addresses ?? [] });
  const addresses = options["node-address"].length > 0 ? options["node-address"] : undefined;
  const asked = only === undefined ? undefined : [only.toLowerCase()];
  // What is only asked before a change is whether a kernel is in its way.
  const nodes = options.apply ? oneOfEachKernel(seen) : asked;
  const request = { before, after: inMode(before, to), seen, nodes, addresses, kernel };
  return { from: before.mode, to, reports: await modeReport(request, options, context) };
}

/** From manifests only. */
export async function reportMode(to: Mode, options: Values, context: Context): Promise<ExitCode> {
  return reported(await modeAnswer(to, options, undefined, context), options, context);
}

/** Of a cluster that Fairlead serves, or whose kube-proxy no migration could replace: by what the proxies say. */
export async function reportServed(to: Mode, options: Values, cluster: Cluster, context: Context): Promise<ExitCode> {
  const node = options.on ?? options.node;
  const wanted = { ...(options.live && { here: true }), ...(node === undefined ? { any: true } : { on: node }) };
  const configured = await configurationOf(given(options), wanted, context);
  sayConfiguration(configured, context);
  const read = { config: configured.setup.config, nodes: await cluster.list(NODES) };
  return reported(await modeAnswer(to, options, read, context), options, context);
}

async function reported(answer: ModeAnswer, { output }: Values, context: Context): Promise<ExitCode> {
  await print(output, dataOf(answer), () => answerText(answer, context), context);
  return exitCodeOf(answer);
}

/** For people: nodes with the same findings together. */
export function answerText({ from, to, reports }: ModeAnswer, { style }: Context): string {
  const head = `${style.bold(`From ${from} to ${to} mode`)}: ${summaryText(reports)}\n`;
  const groups = Map.groupBy(reports, ({ findings }) => JSON.stringify(findings));
  const parts = Array.from(groups.values(), (alike) => {
    const names = firstOf(
      alike.map(({ node }) => node),
      MOST_NAMED,
    );
    return `\n${style.bold(names)}\n${findingsText((alike[0]?.findings ?? []).map(withServices), style)}`;
  });
  return [head, ...parts].join("");
}

export function dataOf({ from, to, reports }: ModeAnswer) {
  return { from, to, nodes: reports };
}

/** What differs is what was asked for; what blocks is in the way. */
export function exitCodeOf({ reports }: ModeAnswer): ExitCode {
  return reports.some(({ findings }) => findings.some(({ state }) => state === "blocks")) ? 1 : 0;
}

/** Counters of kube-proxy and Fairlead in iptables mode. */
const COUNTERS = {
  localhostPackets: "kubeproxy_iptables_localhost_nodeports_accepted_packets_total",
  invalidPackets: "kubeproxy_iptables_ct_state_invalid_dropped_packets_total",
} as const;

export function countersIn(metrics: string): Pick<SeenNode, keyof typeof COUNTERS> {
  const found = Object.entries(COUNTERS).flatMap(([field, name]) => {
    const value = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(metrics)?.[1];
    return value === undefined ? [] : [[field, Number(value)] as const];
  });
  return Object.fromEntries(found);
}

export function checkReportOptions(options: Values): void {
  const { "to-mode": toMode, file, apply, revert } = options;
  const reports = toMode !== undefined && !apply && !revert;
  const given = REPORT_OPTIONS.filter((name) => !isUnset(options[name]));
  if (!reports && given.length > 0) throw new UsageError(`--${given[0]}: is only valid with --to-mode, for its report`);
  if (reports && file.length === 0 && options.mode !== undefined) {
    throw new UsageError("--mode: is only valid with manifests (-f): the cluster's proxies say which mode they are in");
  }
}

/**
 * The mode in the place of kube-proxy's: what is asked for, else what an earlier run was asked for; undefined:
 * kube-proxy's own. The way back begins with that.
 */
export function wantedMode(
  { "to-mode": asked, revert }: Values,
  fairlead: unknown,
  { config }: Survey,
): Mode | undefined {
  if (revert) return undefined;
  const mode = asked ?? rememberedMode(fairlead);
  return mode === config?.mode ? undefined : mode;
}

/** What serves now: kube-proxy's configuration, in the mode that an earlier run was asked for. */
export function runningConfig(config: AgentConfig, fairlead: unknown): AgentConfig {
  const mode = rememberedMode(fairlead);
  return mode === undefined ? config : withMode(config, mode);
}

/**
 * What the rules of other programs on the node mean for the change: those that read the chains of the mode that goes,
 * and those that stop packets which its rules had let pass.
 */
function firewallFindings(
  { before, after }: ModeChange,
  family: IPFamily,
  kernel: KernelState,
): readonly ModeFinding[] {
  const readers = readersOf(kernel.ruleSet).map(({ where, rule }) => `${where}: ${rule}`);
  const topic = `firewall, ${family}`;
  const found = `rules that lead to chains or sets of this mode match nothing then: ${listed(readers)}`;
  const differs: ModeFinding = { topic, state: "differs", found, advice: READERS };
  const reading = readers.length === 0 ? [] : [differs];
  if (factsOf(after.planned.mode).nftTables === undefined) return reading;
  const plan = after.planned.planner.plan(family);
  const others = withoutProxy(kernel);
  const own = toEnd(dryTables(plan, { mode: after.planned.mode, config: after.config }));
  const blocked = blockedPackets({
    groups: plan.groups.values(),
    node: plan.node,
    before: kernel,
    after: { ...others, nftables: [...(others.nftables ?? []), ...own] },
    nodeAddress: after.planned.options.nodeIPs[family],
    semantics: factsOf(before.planned.mode).semantics,
  });
  return [...reading, blocked.length === 0 ? { topic, state: "fits", found: PASSES } : stopped(topic, blocked)];
}

function oneOfEachKernel(seen: ReadonlyMap<string, SeenNode>): readonly string[] {
  return [...new Map([...seen].map(([name, { kernel }]) => [kernel, name])).values()];
}

/** With what a migration is never about: a second agent, and what one remembers. */
function given(options: Values) {
  return { ...options, "service-proxy-name": undefined, "metrics-port": undefined, memory: undefined };
}

/**
 * What Nodes say of their kernels, and the running proxies' counters. A proxy that does not answer leaves its counters
 * unknown.
 *
 * @param nodes Node objects, straight from JSON
 * @param port of the proxies' metricsBindAddress
 */
async function seenNodes(
  nodes: readonly unknown[],
  agents: Agents,
  port: number,
  context: Context,
): Promise<ReadonlyMap<string, SeenNode>> {
  const pods = await agentPods(agents);
  const byName = new Map(nodes.map((node) => [nameOf(node), kernelOf(node)] as const));
  const all = await context.progress("asking the nodes' proxies", () =>
    eachNode([...byName.keys()], async (name) => {
      const pod = pods.get(name);
      const metrics = pod === undefined ? undefined : await metricsOf(proxyIn(pod, agents), port);
      return { name, seen: { ...byName.get(name), ...countersIn(metrics ?? "") } };
    }),
  );
  return new Map(all.map(({ name, seen }) => [name, seen]));
}

async function metricsOf(way: ProxyAccess, port: number) {
  try {
    return (await agentPages(way, { metrics: port, health: port }, "health")).metrics;
  } catch {
    return undefined;
  }
}

function kernelOf(node: unknown): Pick<SeenNode, "kernel"> {
  const kernel = stringOf(valueAt(node, "status", "nodeInfo", "kernelVersion"));
  return kernel === undefined ? {} : { kernel };
}

const REPORT_OPTIONS = Object.keys(reportOptions) as (keyof typeof reportOptions)[];

function isUnset(value: Values[keyof typeof reportOptions]): boolean {
  return value === undefined || value === false || (Array.isArray(value) && value.length === 0);
}

function rememberedMode(fairlead: unknown): Mode | undefined {
  return MODES.find((one) => one === rememberedOptions(fairlead)["mode"]);
}

/** How many rules, or kinds of packets, are written out. */
const NAMED = 3;

const PASSES = "the rules of other programs let pass what they let pass now";

const READERS = "let them match addresses and ports, or conntrack's original destination (-m conntrack --ctorigdst)";

function stopped(topic: string, blocked: readonly BlockedPackets[]): ModeFinding {
  const lines = blocked.map(({ service, finding: { source, frontend, found } }) => {
    const to = `${frontend.kind} ${socketText(frontend.address, frontend.port)} of ${service}`;
    return `${source.class} → ${to}: ${found === undefined ? "unknown" : waysText(found)}`;
  });
  return {
    topic,
    state: "differs",
    found: `rules of other programs stop packets that this mode's own rules accept: ${listed(lines)}`,
    advice: "accept traffic to and from pods, and to node ports, in the firewall before the change",
    services: [...new Set(blocked.map(({ service }) => service))].sort(),
  };
}

function listed(lines: readonly string[]): string {
  const more = lines.length > NAMED ? `; and ${lines.length - NAMED} more` : "";
  return `${lines.slice(0, NAMED).join("; ")}${more}`;
}

interface ReportRequest {
  readonly before: AgentSetup;
  readonly after: AgentSetup;
  /** What is known of nodes beyond their objects. */
  readonly seen: ReadonlyMap<string, SeenNode>;
  /** The only nodes that are asked about; absent: all. */
  readonly nodes?: readonly string[] | undefined;
  /** Its addresses in place of those of its Node. */
  readonly addresses?: readonly string[] | undefined;
  /** Its kernel; absent: none is looked at. */
  readonly kernel?: NodeKernel | undefined;
}

/** Plans each node in both modes, of objects that are read once. */
async function modeReport(
  request: ReportRequest,
  options: OptionValues<typeof sourceOptions>,
  context: Context,
): Promise<readonly NodeReport[]> {
  const { before, after } = request;
  const nodes = await allNodes(options, context);
  const names = request.nodes ?? [...nodes.keys()];
  const wanted = { serviceCIDRs: true, networks: after.networks, config: after.config };
  const cluster = await clusterNow(options, context, wanted);
  const reports: NodeReport[] = [];
  const given = addressesOf(request);
  for (const name of names) {
    const node = nodes.get(name);
    const plan = (setup: AgentSetup) => {
      const others = [...nodes.values()].filter((other) => other.name !== name);
      const otherAddresses = others.flatMap(({ addresses }) => addresses).sort();
      const own = { ...cluster, ...(node && { node }), otherAddresses };
      const planned = planNode({ ...setup, cluster: own, nodeName: name, ...(given && { addresses: given }) });
      return { planned, config: setup.config };
    };
    // A Node object need not name all of them.
    const seen = { ...(given && { addresses: given }), ...request.seen.get(name) };
    const change = { before: plan(before), after: plan(after), seen };
    const work = async () => [...modeChange(change), ...(await kernelFindings(change, request.kernel))];
    reports.push({ node: name, findings: await context.progress(`comparing the modes on ${name}`, work) });
  }
  return reports;
}

/** How many nodes and services are named in a line. */
const MOST_NAMED = 5;

function summaryText(reports: readonly NodeReport[]): string {
  const all = reports.flatMap(({ findings }) => findings);
  const blocked = reports.filter(({ findings }) => findings.some(({ state }) => state === "blocks"));
  const services = new Set(all.filter(({ state }) => state === "differs").flatMap(({ services: of = [] }) => of));
  const changing =
    services.size === 0
      ? "no service changes"
      : `${services.size} ${services.size === 1 ? "service changes" : "services change"}`;
  return blocked.length === 0
    ? changing
    : `${changing}; ${firstOf(
        blocked.map(({ node }) => node),
        MOST_NAMED,
      )} cannot run it`;
}

function withServices(finding: ModeFinding): ModeFinding {
  const { services = [], state } = finding;
  if (services.length === 0 || state === "fits") return finding;
  return { ...finding, found: `${finding.found} (${firstOf(services, MOST_NAMED)})` };
}

function addressesOf({ addresses, kernel }: ReportRequest): readonly string[] | undefined {
  const known = addresses ?? kernel?.addresses;
  return known === undefined ? undefined : [...new Set(["127.0.0.1", "::1", ...known])];
}

async function kernelFindings(change: ModeChange, kernel: NodeKernel | undefined): Promise<readonly ModeFinding[]> {
  if (kernel === undefined) return [{ topic: "firewall", state: "unknown", found: NOT_LOOKED }];
  const { nodeIPs } = change.after.planned.options;
  const found: ModeFinding[] = [];
  for (const family of kernel.families) {
    if (change.before.planned.planner.plan(family).groups.size === 0) continue;
    found.push(...firewallFindings(change, family, await kernel.state(family, Object.values(nodeIPs))));
  }
  return found;
}

const NOT_LOOKED =
  "rules of other programs were not looked at: run it on the node with --live, or with --rules FILE of iptables-save";
