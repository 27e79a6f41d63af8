// `fairlead verify --watch`: plans as if Fairlead served this node, compares the kernel with the plan all the time, and
// changes nothing. It only reads the kernel.
import { createServer, type Server } from "node:http";
import { type Clock, IP_FAMILIES, sleep, socketText, systemClock } from "@fairlead/base";
import { type AgentConfig, parseDuration, type SocketAddress } from "@fairlead/config";
import { factsOf } from "@fairlead/inspect";
import { LivePlan, NodeEvents, selectionOf, serviceUID } from "@fairlead/intake";
import { type KernelReader, openKernelReader } from "@fairlead/kernel";
import { type ApiConnection, loadConnection, type ObjectSource, postObject, requestObject } from "@fairlead/watch";
import type { verifyOptions } from "../../../facts/plans.ts";
import type { CommandInput } from "../../../frame/command.ts";
import type { Context } from "../../../frame/context.ts";
import { CommandFailure, UsageError } from "../../../frame/errors.ts";
import { type AgentSetup, agentSetup, demandReadable, inMode } from "../../../inputs/agent.ts";
import { apiSource, connect, failureText, nodeNameOf, orFailure, warnOf } from "../../../inputs/cluster-access.ts";
import { configurationOf, sayConfiguration } from "../../../inputs/configuration.ts";
import { liveSource } from "../../../inputs/source.ts";
import { version } from "../../../version.ts";
import { WatchedFamily } from "./family.ts";
import { type SeenMode, seenMode } from "./kernel.ts";
import { COMPONENT, differencesPage, metricsText, reportEvents, type WatchLog, watchLog } from "./report.ts";

type Options = CommandInput<typeof verifyOptions>["options"];

/** Milliseconds between two looks for a proxy that has not begun to serve. */
const PATIENCE_MS = 2_000;

export async function watch(given: Options, context: Context): Promise<void> {
  demandThisKernel(given);
  const setup = await setupOf(given, context);
  const options = { ...given, node: given.node ?? setup.config.hostnameOverride };
  const clock = systemClock;
  const log = watchLog(given.output === "json" ? "json" : "text", context.out, () => clock.now());
  const kernel = openKernelReader(context.runner);
  const pages = new Pages();
  try {
    await pages.listen(setup.config);
    log.info("Comparing the kernel with the plan; nothing is changed", { version: `v${version}`, pid: process.pid });
    while (!context.signal.aborted) {
      const mode = await awaitMode(kernel, clock, log, context.signal);
      if (mode !== undefined) await watchMode({ mode, kernel, setup, options, pages, clock, log, context });
    }
  } finally {
    await pages.close();
    await kernel.close();
  }
}

function demandThisKernel({ rules, on, live, sysdump, repair, output, ...options }: Options): void {
  const others = [rules, on, sysdump].some((value) => value !== undefined) || live || repair || options["all-nodes"];
  if (others) {
    throw new UsageError("--watch: leave out --on, --all-nodes, --live, --rules, --sysdump and --repair");
  }
  if (output === "yaml") throw new UsageError("--watch: prints lines of text or JSON");
}

/** With a file of the configuration nothing else is asked. */
async function setupOf(options: Options, context: Context): Promise<AgentSetup> {
  let setup: AgentSetup;
  if (options.config !== undefined) setup = agentSetup(options, context, { anyMode: true });
  else {
    const configured = await configurationOf(options, { here: true }, context, { anyMode: true });
    sayConfiguration(configured, context);
    setup = configured.setup;
  }
  demandReadable(setup.mode);
  if (setup.config.serviceProxyName !== "") {
    throw new CommandFailure(
      "--watch: compares with the node's default proxy, which does not serve the Services that --service-proxy-name selects",
    );
  }
  return setup;
}

/** @returns undefined: stopped before there was a proxy */
async function awaitMode(
  kernel: KernelReader,
  clock: Clock,
  log: WatchLog,
  stop: AbortSignal,
): Promise<SeenMode | undefined> {
  for (let logged = false; !stop.aborted; logged = true) {
    const found = await seenMode(kernel);
    if (found !== undefined) return found;
    if (!logged) log.warn("No rules of a proxy found on this node; waiting for kube-proxy");
    await sleep(clock, PATIENCE_MS, stop);
  }
  return undefined;
}

interface ModeWatch {
  readonly mode: SeenMode;
  readonly kernel: KernelReader;
  readonly setup: AgentSetup;
  readonly options: Options;
  readonly pages: Pages;
  readonly clock: Clock;
  readonly log: WatchLog;
  readonly context: Context;
}

/** Compares until the signal aborts, or the proxy runs in another mode. */
async function watchMode(parts: ModeWatch): Promise<void> {
  const { mode, kernel, options, pages, clock, log, context } = parts;
  const setup = inMode(parts.setup, mode.name);
  const grace = graceOf(options, setup.config);
  const nodeName = nodeNameOf(options);
  log.info("Comparing with kube-proxy", { mode: mode.name, gracePeriod: `${grace}ms`, node: nodeName });
  const ended = new AbortController();
  const signal = AbortSignal.any([context.signal, ended.signal]);
  const { source, events } = await openSource(setup, options, nodeName, log, context);
  const onNews = reportEvents(log, events);
  const families = IP_FAMILIES.map((family) => new WatchedFamily({ family, mode, kernel, grace, clock, onNews }));
  pages.show({ mode: mode.name, families, grace });
  const plan = new LivePlan({
    ...setup,
    nodeName,
    mode: factsOf(mode.name),
    purpose: "rules",
    onPlanned(services, { changes }) {
      for (const one of families) {
        const change = changes.get(one.family);
        const isFirst = services === "all";
        if (isFirst || change !== undefined) one.take(plan.planner.plan(one.family), isFirst ? undefined : change);
      }
    },
  });
  const onOtherMode = (other: string) => {
    log.info("kube-proxy runs in another mode now; comparing anew", { mode: other });
    ended.abort();
  };
  await Promise.all([
    plan.follow(source, signal),
    followAddresses(kernel, plan, signal),
    watchKernel({ kernel, mode, families, clock, log, onOtherMode }, signal),
  ]).finally(() => ended.abort());
}

async function followAddresses(kernel: KernelReader, plan: LivePlan, signal: AbortSignal): Promise<void> {
  for await (const found of kernel.addresses.watch({ signal })) plan.setAddresses(found.map(({ address }) => address));
}

/** A proxy programs a change within this time, unless its cluster is very large. */
const GRACE_MS = 5_000;
/** A change may wait for one period; the sync that takes it in may be the second one. */
const PERIODS = 3;

function graceOf({ "grace-period": given }: Options, config: AgentConfig): number {
  if (given === undefined) return Math.max(GRACE_MS, PERIODS * config[config.mode].minSyncPeriodMs);
  const milliseconds = parseDuration(given);
  if (milliseconds === undefined || milliseconds < 0) {
    throw new UsageError(`--grace-period=${given}: must be a duration such as 5s`);
  }
  return milliseconds;
}

interface OpenedSource {
  readonly source: ObjectSource;
  /** Absent without an API server. */
  readonly events?: NodeEvents;
}

/** Of manifests, or of the API server: that of the options, else that of the proxy's configuration. */
async function openSource(
  { config }: AgentSetup,
  options: Options,
  nodeName: string,
  log: WatchLog,
  context: Context,
): Promise<OpenedSource> {
  if (options.file.length > 0) return { source: await liveSource(options, config, context) };
  const connection = await connectionOf(config, options, context);
  const userAgent = `fairlead/${version}`;
  const events = new NodeEvents({
    node: nodeName,
    component: COMPONENT,
    post: (namespace, event) =>
      postObject(connection, `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`, event, userAgent),
    serviceUID: (namespace, name) =>
      serviceUID((request) => requestObject(connection, request, userAgent), namespace, name),
    clock: systemClock,
    log,
  });
  const source = apiSource(connection, { nodeName, ...selectionOf(config) }, (report) => {
    if (report.type === "failing") log.warn(failureText(report));
    warnOf(report, { warn: (line) => log.warn(line) });
  });
  return { source, events };
}

function connectionOf({ client }: AgentConfig, options: Options, context: Context): Promise<ApiConnection> {
  const { kubeconfig, context: name, server, as } = options;
  const isGiven = [kubeconfig, name, server, as].some((value) => value !== undefined);
  if (isGiven || client.kubeconfig === undefined) return connect(options, context);
  return orFailure("", loadConnection({ ...client, onWarning: context.warn }));
}

/** Milliseconds between two looks, and the least. */
const EVERY_MS = 2_000;
const SOONEST_MS = 200;
/** So many times as long as a look took nothing is done after it. */
const REST = 3;
/** Looks in a row that find another mode: a proxy that starts takes its old rules away first. */
const SURE = 5;

export interface KernelWatch {
  readonly kernel: KernelReader;
  readonly mode: SeenMode;
  readonly families: readonly WatchedFamily[];
  readonly clock: Clock;
  readonly log: Pick<WatchLog, "info" | "warn">;
  /** The proxy runs in another mode now: everything would have to be planned anew. */
  readonly onOtherMode: (name: string) => void;
}

/** Looks again and again until the signal aborts; never rejects. */
export async function watchKernel(watched: KernelWatch, signal: AbortSignal): Promise<void> {
  const { families, clock } = watched;
  const reported = new Map<WatchedFamily, string | undefined>();
  let others = 0;
  while (!signal.aborted) {
    const began = clock.monotonic();
    for (const family of families) {
      await family.look();
      logProblem(watched.log, family, reported.get(family));
      reported.set(family, family.problem);
    }
    const other = await otherMode(watched);
    others = other === undefined ? 0 : others + 1;
    if (other !== undefined && others >= SURE) return watched.onOtherMode(other);
    await sleep(clock, Math.max(pause(families), REST * (clock.monotonic() - began)), signal);
  }
}

/** Until the next look is due, which is earlier where something that differs will have done so for the grace. */
function pause(families: readonly WatchedFamily[]): number {
  const waits = families.flatMap(({ nextIn }) => nextIn ?? []);
  return Math.max(SOONEST_MS, Math.min(EVERY_MS, ...waits));
}

/** Undefined: none is seen. */
async function otherMode({ kernel, mode, families }: KernelWatch): Promise<string | undefined> {
  // While everything agrees it cannot be.
  if (families.every(({ suspicions }) => suspicions.length === 0)) return undefined;
  const found = await seenMode(kernel).catch(() => undefined);
  return found?.name === mode.name ? undefined : found?.name;
}

function logProblem(log: KernelWatch["log"], { family, problem }: WatchedFamily, before: string | undefined): void {
  if (problem === before) return;
  if (problem === undefined) log.info("Kernel can be read again", { ipFamily: family });
  else log.warn("Cannot read the kernel; comparison paused, retrying", { ipFamily: family, error: problem });
}

interface Shown {
  readonly mode: string;
  readonly families: readonly WatchedFamily[];
  readonly grace: number;
}

/** kube-proxy has its own port: 10249 becomes 10449. */
const METRICS_PORT = 10_249;
const PORTS_APART = 200;

/** Where the pages are: that of the configuration's metrics, apart from kube-proxy's port. */
export function listenAddress({ metricsBindAddress: { address, port } }: AgentConfig): SocketAddress {
  return { address, port: port === METRICS_PORT ? port + PORTS_APART : port };
}

class Pages {
  readonly #server: Server = createServer(({ url = "", method }, response) => {
    const page = method === "GET" ? this.#page(new URL(url, "http://here").pathname) : undefined;
    response.writeHead(page === undefined ? 404 : 200, { "content-type": page?.type ?? "text/plain" });
    response.end(page?.text ?? "not found\n");
  });
  #shown: Shown | undefined;

  async listen(config: AgentConfig): Promise<void> {
    const { address, port } = listenAddress(config);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once("error", reject).listen(port, address, resolve);
    await orFailure(`${socketText(address, port)}: `, promise);
  }

  show(shown: Shown): void {
    this.#shown = shown;
  }

  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
  }

  #page(path: string): { readonly type: string; readonly text: string } | undefined {
    const { mode = "", families = [], grace = 0 } = this.#shown ?? {};
    if (path === "/healthz") return { type: "text/plain", text: "ok\n" };
    if (path === "/metrics") return { type: "text/plain; version=0.0.4", text: metricsText(families) };
    if (path !== "/differences" || this.#shown === undefined) return undefined;
    const text = `${JSON.stringify(differencesPage(mode, families, grace), undefined, 2)}\n`;
    return { type: "application/json", text };
  }
}
