/** `console`: serves a page on this host's loopback. */

import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { errorText } from "@fairlead/base";
import { type LiveCluster, type NodePorts, SourceHealth, startConsole, UnusableObjects } from "@fairlead/console";
import { agentStatus } from "@fairlead/inspect";
import { selectionOf } from "@fairlead/intake";
import type { Argv } from "@fairlead/kernel";
import { createManifestsSnapshot, type ObjectSource, type SourceReport } from "@fairlead/watch";
import type { consoleOptions } from "../facts/clusters.ts";
import type { CommandInput, ExitCode } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import type { AgentSetup } from "../inputs/agent.ts";
import { nodeNameOf } from "../inputs/cluster-access.ts";
import { configurationOf, sayConfiguration, type WantedProxy } from "../inputs/configuration.ts";
import { allNodes, liveSource } from "../inputs/source.ts";
import { interfaceAddresses, stateOf } from "../node/access.ts";
import { agentPages, portsOf, proxyHere, proxyIn } from "../node/agent-endpoint.ts";
import { agentsOf, findAgentPod } from "../node/agent-pods.ts";
import { fromSysdump } from "../sysdump/dump.ts";
import { version } from "../version.ts";
import { commandAnswers, nodeTraffic } from "./console-answers.ts";
import { reportsOf } from "./verify/look.ts";

type Values = CommandInput<typeof consoleOptions>["options"];

export async function run({ options: given }: CommandInput<typeof consoleOptions>, around: Context): Promise<ExitCode> {
  const { options, context } = await fromSysdump(given, around);
  const { file, live } = options;
  if (live && file.length === 0)
    throw new UsageError("--live: is for manifests (-f); a cluster's nodes are looked at anyway");
  const configured = await configurationOf(options, await firstProxy(options, context), context);
  sayConfiguration(configured, context);
  const { setup } = configured;
  const looked = live || file.length === 0;
  const [unusable, health] = [new UnusableObjects(), new SourceHealth()];
  const settings = {
    html: await readPage(),
    port: portOf(options),
    version,
    sourceName: sourceName(given),
    source: await sourceOf(options, setup, context, (report) => {
      if (report.type === "badObject") unusable.report(report);
      health.take(report);
    }),
    unusable,
    health,
    setup,
    nodeName: options.node !== undefined || live ? nodeNameOf(options) : undefined,
    answers: (cluster) => commandAnswers(cluster, options, context, given.sysdump),
    ...(looked && { looking: (cluster) => nodePorts(cluster, options, context, given.sysdump !== undefined) }),
  } satisfies Parameters<typeof startConsole>[0];
  await context.untilStopped(async () => {
    await using opened = new AsyncDisposableStack();
    const running = await orFailure(options, startConsole(settings, context.signal));
    opened.defer(() => running.close());
    context.out(`${running.url}\nGood for one browser, once; Ctrl-C ends it.\n`);
    if (!options["no-open"]) opened.use(await openBrowser(running.url, context));
    await running.ended;
    // Manifests that are read once end before a browser has looked.
    if (!context.signal.aborted) await once(context.signal, "abort");
  });
  return 0;
}

function sourceName({ file, sysdump }: Values): string {
  if (sysdump !== undefined) return `archive ${sysdump}`;
  return file.length === 0 ? "cluster" : `manifests ${file.join(", ")}`;
}

/** Of the node that the list looks from; each other one is asked when its kernel is looked at. */
async function firstProxy(options: Values, context: Context): Promise<WantedProxy> {
  if (options.file.length > 0) return { here: options.live };
  if (options.node !== undefined) return { on: options.node };
  const names = await allNodes(options, context).then(
    (nodes) => [...nodes.keys()],
    // Without the right to list them the list looks from a node that endpoints are on.
    () => [],
  );
  return names[0] === undefined ? { any: true } : { on: names[0] };
}

function portOf({ port = "0" }: Values): number {
  const number = Number(port);
  if (Number.isInteger(number) && number >= 0 && number <= 65_535) return number;
  throw new UsageError(`--port=${port}: must be a number from 0 (any that is free) to 65535`);
}

/** One path is followed; several, and standard input, are read once. */
function sourceOf(
  options: Values,
  { config }: AgentSetup,
  context: Context,
  onReport: (report: SourceReport) => void,
): Promise<ObjectSource> | ObjectSource {
  const { file } = options;
  if (file.length < 2 && file[0] !== "-") {
    return liveSource(options, config, context, onReport);
  }
  const { warn } = context;
  // What if reads it again.
  let read: ReturnType<Context["readStandardInput"]> | undefined;
  const readStandardInput = () => {
    read ??= context.readStandardInput();
    return read;
  };
  return createManifestsSnapshot({
    paths: file,
    nodeName: nodeNameOf(options),
    ...selectionOf(config),
    readStandardInput,
    onReport: (report) => {
      onReport(report);
      if (report.type === "badObject") warn(`${report.file ?? report.key}: ${report.error}`);
    },
  });
}

async function orFailure<T>({ port }: Values, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new CommandFailure(`--port=${port ?? "0"}: ${errorText(error)}`, { cause: error });
  }
}

/**
 * How the console looks at nodes: this one, or others as `--on` does.
 *
 * @param archived whether an archive is in the place of the nodes
 */
function nodePorts(cluster: LiveCluster, options: Values, context: Context, archived: boolean): NodePorts {
  // A page says itself how long something takes.
  const quiet: Context = { ...context, warn: () => {}, progress: (_what, work) => work() };
  const { live } = options;
  const agents = agentsOf(options, context);
  return {
    // --live is this host.
    reaches: (node) => !live || node === cluster.nodeName,
    kernel: async (node) => {
      const state = await stateOf({ ...options, on: live ? undefined : node }, quiet);
      cluster.setAddresses(node, interfaceAddresses(state));
      if (!live) cluster.setSetup(node, (await configurationOf(options, { on: node }, quiet)).setup);
      const setup = cluster.setupOf(node);
      return cluster.withPlan(node, (planned) => reportsOf(planned, setup, { state }, quiet));
    },
    agent: async (node) => {
      const way = live ? proxyHere(context) : proxyIn(await findAgentPod(node, agents), agents);
      return agentStatus(await agentPages(way, portsOf(options), "health"));
    },
    ...(!archived && { traffic: nodeTraffic(cluster, options, quiet) }),
  };
}

/** Alongside the bundle; from the sources: where the bundle is built. */
const PAGE = new URL(import.meta.url.endsWith(".ts") ? "../../dist/console.html" : "./console.html", import.meta.url);

async function readPage(): Promise<string> {
  try {
    return await readFile(PAGE, "utf8");
  } catch (error) {
    throw new CommandFailure(`the console's page is missing from this installation: ${errorText(error)}`, {
      cause: error,
    });
  }
}

/**
 * Opens an address in the user's browser. Other users of this machine see arguments of processes, so the address with
 * its token stands in a file that only this user reads.
 *
 * @returns what takes the file away again
 */
async function openBrowser(url: string, { runner, warn }: Context): Promise<AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-console-"));
  const file = join(folder, "open.html");
  await writeFile(file, `<!doctype html><meta http-equiv="refresh" content="0; url=${url}">`, { mode: 0o600 });
  runner.run(opener(pathToFileURL(file).href)).catch((error: unknown) => {
    warn(`no browser could be started (${errorText(error)}): open the address yourself`);
  });
  return { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

function opener(address: string): Argv {
  if (process.platform === "darwin") return ["open", address];
  return process.platform === "win32" ? ["explorer", address] : ["xdg-open", address];
}
