/** `status`: the agent of every node. */

import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { errorText } from "@fairlead/base";
import { agentStatus, type NodeStatus } from "@fairlead/inspect";
import type { statusOptions } from "../facts/nodes.ts";
import type { CommandInput, ExitCode } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { printList } from "../frame/output.ts";
import type { Style } from "../frame/terminal.ts";
import { counted, tableText, verdictText } from "../frame/text.ts";
import { noSuchNode } from "../inputs/names.ts";
import { knownNodes } from "../inputs/planned.ts";
import {
  type AgentPorts,
  agentPages,
  eachNode,
  type ProxyAccess,
  portsOf,
  proxyHere,
  proxyIn,
} from "../node/agent-endpoint.ts";
import { agentPods, agentsOf } from "../node/agent-pods.ts";
import { verifyNodes } from "./verify/look.ts";
import { within } from "./verify/run.ts";

type Values = CommandInput<typeof statusOptions>["options"];

export async function run({ options }: CommandInput<typeof statusOptions>, context: Context): Promise<ExitCode> {
  const { live, on, verify, output } = options;
  if (live && (on !== undefined || verify)) throw new UsageError("--live: leave out --on and --verify");
  if (options.watch) return watch(options, context);
  const rows = await rowsNow(options, context);
  const text = (wide: boolean) =>
    `${statusText(rows, { wide, now: Date.now() }, context.style)}${verdictOf(rows, verify, context)}`;
  const names = rows.map(({ node }) => node);
  await printList(output, rows, { text, names }, context);
  return rows.every(isWell) ? 0 : 1;
}

async function rowsNow(options: Values, context: Context): Promise<readonly NodeStatus[]> {
  const asked = options.live
    ? [await askOne(hostname(), proxyHere(context), portsOf(options))]
    : await askAll(options, context);
  return options.verify ? withDifferences(asked, options, context) : asked;
}

/** Milliseconds between two rounds of questions. */
const ROUND_MS = 5_000;

async function watch(options: Values, context: Context): Promise<ExitCode> {
  const { output } = options;
  if (output !== "table" && output !== "wide")
    throw new UsageError("--watch: prints a table; leave out --output or give wide");
  const { signal, style, out } = context;
  const shown: ShownRows = new Map();
  await context.untilStopped(async () => {
    while (!signal.aborted) {
      const isFirst = shown.size === 0;
      const rows = changedRows(shown, await rowsNow(options, context));
      const text = statusText(rows, { wide: output === "wide", now: Date.now() }, style);
      out(isFirst ? text : text.slice(text.indexOf("\n") + 1));
      await sleep(ROUND_MS, undefined, { signal }).catch(() => undefined);
    }
  });
  return 0;
}

function verdictOf(rows: readonly NodeStatus[], verify: boolean, { style }: Context): string {
  const ill = rows.filter((row) => !isWell(row)).map(({ node }) => node);
  const nodes = counted(rows.length, "node");
  if (ill.length === 0) return verdictText(true, `${nodes}${verify ? ", nothing differs" : ""}`, "", style);
  const next = "fairlead status -o wide gives reasons, fairlead doctor --on NODE looks at one";
  const named = ill.length > MOST_NAMED ? `${ill.slice(0, MOST_NAMED).join(", ")}, …` : ill.join(", ");
  return verdictText(false, `${ill.length} of ${nodes} (${named})`, next, style);
}

const MOST_NAMED = 3;

function isWell({ answers, healthy, differences = 0 }: NodeStatus): boolean {
  return answers && healthy !== false && differences === 0;
}

async function askAll(options: Values, context: Context): Promise<readonly NodeStatus[]> {
  const meant = agentsOf(options, context);
  const names = [...(await knownNodes(options, meant, context)).keys()];
  const { on } = options;
  if (names.length === 0) throw new CommandFailure("the cluster has no Nodes: nothing was asked");
  if (on !== undefined && !names.includes(on)) throw noSuchNode("on", on, names);
  const ports = portsOf(options);
  const agents = await agentPods(meant);
  const ask = async (node: string): Promise<NodeStatus> => {
    const pod = agents.get(node);
    if (pod === undefined) return { node, answers: false, problem: "no agent runs there", readAt: now() };
    return askOne(node, proxyIn(pod, meant), ports);
  };
  const wanted = on === undefined ? names : [on];
  return context.progress(`asking ${wanted.length} nodes`, () => eachNode(wanted, ask));
}

async function askOne(node: string, way: ProxyAccess, ports: AgentPorts): Promise<NodeStatus> {
  try {
    const pages = await agentPages(way, ports);
    return { node, answers: true, ...agentStatus(pages), readAt: now() };
  } catch (error) {
    return { node, answers: false, problem: errorText(error), readAt: now() };
  }
}

function now(): string {
  return new Date().toISOString();
}

async function withDifferences(
  rows: readonly NodeStatus[],
  options: Values,
  context: Context,
): Promise<readonly NodeStatus[]> {
  const reports = new Map((await verifyNodes(options, context)).map((report) => [report.node, report]));
  return rows.map((row) => {
    const report = reports.get(row.node);
    if (report === undefined) return row;
    if ("problem" in report) return { ...row, problem: row.problem ?? `its kernel: ${report.problem}` };
    return { ...row, differences: report.families.flatMap((family) => within(options, family).services).length };
  });
}

export interface TextOptions {
  /** With owners of all kinds and the reasons why a node does not answer. */
  readonly wide: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

function statusText(rows: readonly NodeStatus[], options: TextOptions, style: Style): string {
  const head = ["node", "mode", "version", "healthy", "last sync", "owners", "differs"];
  return tableText(
    options.wide ? [...head, "age", "remark"] : head,
    rows.map((row) => cells(row, options, style)),
  );
}

type ShownRows = Map<string, string>;

/** The rows that changed; a change of times only does not count. */
export function changedRows(shown: ShownRows, rows: readonly NodeStatus[]): readonly NodeStatus[] {
  return rows.filter((row) => {
    const { readAt: _read, lastSync: _synced, ...said } = row;
    const text = JSON.stringify(said);
    const isNew = shown.get(row.node) !== text;
    shown.set(row.node, text);
    return isNew;
  });
}

function cells(row: NodeStatus, { wide, now }: TextOptions, style: Style): readonly string[] {
  const { node, version, program, lastSync, readAt, problem = "" } = row;
  const name = program === "kube-proxy" ? `kube-proxy ${version}` : version;
  const narrow = [
    node,
    modeText(row),
    name ?? "-",
    healthText(row, style),
    ageText(lastSync, now),
    ownersText(row),
    differsText(row, style),
  ];
  return wide ? [...narrow, ageText(readAt, now), problem] : narrow;
}

/** With the service proxy name of an agent that has one: `nftables (edge)`. */
function modeText({ mode = "-", serviceProxyName }: NodeStatus): string {
  return serviceProxyName === undefined ? mode : `${mode} (${serviceProxyName})`;
}

function healthText({ answers, healthy }: NodeStatus, style: Style): string {
  if (!answers) return style.bad("no answer");
  if (healthy === undefined) return "-";
  return healthy ? style.good("yes") : style.bad("no");
}

/** `12 s ago` */
function ageText(time: string | undefined, now: number): string {
  if (time === undefined) return "-";
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}

function ownersText({ owners }: NodeStatus): string {
  if (owners === undefined) return "-";
  const parts = (["ours", "foreign", "mixed"] as const).filter((owner) => owner === "ours" || owners[owner] > 0);
  return parts.map((owner) => `${owners[owner]} ${owner}`).join(", ");
}

function differsText({ differences }: NodeStatus, style: Style): string {
  if (differences === undefined) return "-";
  return differences === 0
    ? style.good("nothing")
    : style.bad(differences === 1 ? "1 service" : `${differences} services`);
}
