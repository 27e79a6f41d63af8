import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { IP_FAMILIES } from "@fairlead/base";
import {
  type Answers,
  type Change,
  changedPlans,
  type LiveCluster,
  RequestError,
  type TraceAnswer,
  type WhatIfAnswer,
} from "@fairlead/console";
import type { IPFamily } from "@fairlead/core";
import { dryRun, type PlannedNode } from "@fairlead/inspect";
import { accessTexts } from "../../cluster/access.ts";
import type { CommandInput } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import type { AgentSetup } from "../../inputs/agent.ts";
import { diffCommand } from "../diff/index.ts";
import { rulesText } from "../plan/rules-text.ts";
import { traceCommand } from "../trace/index.ts";
import { addressedTo } from "./destination.ts";
import { nodeAnswers } from "./node-answers.ts";
import type { consoleOptions } from "./options.ts";
import { saidBy } from "./said.ts";

type Values = CommandInput<typeof consoleOptions>["options"];

/**
 * What other commands answer, on the objects that the console has.
 *
 * @param archive what --sysdump names; undefined: nodes are asked
 */
export function commandAnswers(
  cluster: LiveCluster,
  options: Values,
  context: Context,
  archive: string | undefined,
): Answers {
  return {
    gets: {
      "/api/trace": (query) => traced(cluster, { ...options, sysdump: archive }, query, context),
      ...nodeAnswers(cluster, options, context, archive !== undefined),
    },
    posts: { "/api/what-if": (_query, body) => whatIf(cluster, readChange(body), context) },
  };
}

async function traced(
  cluster: LiveCluster,
  options: Values,
  query: URLSearchParams,
  context: Context,
): Promise<TraceAnswer> {
  await cluster.ready;
  const node = query.get("node") ?? cluster.nodeName;
  const to = query.get("to") ?? "";
  const from = query.get("from") ?? "pod";
  const setup = cluster.setupOf(node);
  const { clusterCIDRs } = setup.config;
  const packet = { from: [from], to: [to], ...(clusterCIDRs.length > 0 && { "cluster-cidr": clusterCIDRs }) };
  const cidrs = clusterCIDRs.length === 0 ? "" : ` --cluster-cidr ${clusterCIDRs.join(",")}`;
  const command = `fairlead trace --from ${from} --to ${to}${cidrs}`;
  const { live, sysdump } = options;
  if (sysdump !== undefined) {
    const where = { sysdump: [sysdump], on: [node] };
    const trace = await saidBy<TraceAnswer["trace"]>(traceCommand, [], { ...packet, ...where }, context);
    const source = `archive of ${node}`;
    return { at: Date.now(), source, command: `${command} --sysdump ${sysdump} --on ${node}`, trace };
  }
  if (live || options.file.length === 0) {
    const where = live ? { live: [""] } : { on: [node], ...accessTexts(options) };
    const trace = await saidBy<TraceAnswer["trace"]>(traceCommand, [], { ...packet, ...where }, context);
    return {
      at: Date.now(),
      source: `kernel of ${node}`,
      command: `${command} ${live ? "--live" : `--on ${node}`}`,
      trace,
    };
  }
  const { text, addresses, socket } = await cluster.withPlan(node, async (planned) => {
    const socket = addressedTo(planned, to);
    const text = await planText(planned, setup, socket.startsWith("[") ? "IPv6" : "IPv4");
    return { text, socket, addresses: Object.values(planned.options.nodeIPs) };
  });
  const readStandardInput = async () => Buffer.from(text);
  const own = { rules: ["-"], ...(addresses.length > 0 && { "node-address": addresses }) };
  const trace = await saidBy<TraceAnswer["trace"]>(
    traceCommand,
    [],
    { ...packet, to: [socket], ...own },
    { ...context, readStandardInput },
  );
  const at = cluster.changedAt;
  return { at, source: `plan of ${node}`, command: `fairlead plan … | ${command} --rules -`, trace };
}

async function planText(
  { planner, mode }: PlannedNode,
  { config }: Pick<AgentSetup, "config">,
  family: IPFamily,
): Promise<string> {
  return rulesText(await dryRun(planner.plan(family), { mode, config }));
}

type Families = NonNullable<WhatIfAnswer["families"]>;

/** More services than that are compared by `fairlead diff`: here a user waits. */
const MOST_SERVICES = 200;

async function whatIf(
  cluster: LiveCluster,
  change: Change & { readonly node?: string },
  context: Context,
): Promise<WhatIfAnswer> {
  await cluster.ready;
  const { node = cluster.nodeName } = change;
  const setup = cluster.setupOf(node);
  const { before, after, setup: changed, ...found } = await changedPlans(cluster, setup, node, change);
  const answer = { planAt: cluster.changedAt, node, ...found };
  if (found.services.length > MOST_SERVICES) return answer;
  const folder = await mkdtemp(join(tmpdir(), "fairlead-what-if-"));
  try {
    const families: Families[number][] = [];
    for (const family of IP_FAMILIES) {
      const [old, now] = [join(folder, "before.txt"), join(folder, "after.txt")];
      await writeFile(old, await planText(before, setup, family));
      await writeFile(now, await planText(after, changed, family));
      const addresses = Object.values(before.options.nodeIPs);
      const given = { family: [family.toLowerCase()], "traffic-only": [""], "node-address": addresses };
      families.push(await saidBy<Families[number]>(diffCommand, [old, now], given, context));
    }
    return { ...answer, families };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function readChange(body: unknown): Change & { readonly node?: string } {
  const text = (name: string) => {
    const value: unknown = typeof body === "object" && body !== null ? Reflect.get(body, name) : undefined;
    return typeof value === "string" ? value : "";
  };
  const change = { manifests: text("manifests"), excludeCIDR: text("cidr"), configuration: text("configuration") };
  if (Object.values(change).every((one) => one.trim() === "")) {
    throw new RequestError(400, "give manifests, a configuration or a CIDR");
  }
  const node = text("node");
  return node === "" ? change : { ...change, node };
}
