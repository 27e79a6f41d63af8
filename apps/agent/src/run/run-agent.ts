/** Runs an agent until it is stopped: its servers, its syncs, and changes that other processes made. */

import { errorChainText, sleep } from "@fairlead/base";
import { KUBE_PROXY_RELEASE } from "@fairlead/config";
import { ownershipReport } from "@fairlead/intake";
import { version } from "../about/version.ts";
import { serverNotListening } from "../events.ts";
import { bind, type ServerName } from "../http/listen.ts";
import { configz, metricsApp } from "../http/metrics-app.ts";
import { nodeProfiles } from "../http/profiles.ts";
import { sliMetrics } from "../metrics/sync-metrics.ts";
import { healthApp } from "../proxy-health.ts";
import type { SyncLoop } from "../sync/sync-loop.ts";
import { followFiles } from "../watched-files.ts";
import { createAgent } from "./agent.ts";
import { followInputs, NodeEligibility } from "./inputs.ts";
import type { Agent, AgentParts } from "./parts.ts";

/** Milliseconds that what runs gets to end after SIGTERM. A restore that is cut off leaves its tables as they were. */
const SHUTDOWN_MS = 1_500;

/**
 * Runs the agent until `stop` aborts or it cannot go on. The rules stay in place either way.
 *
 * @returns undefined after `stop`; else why it cannot go on
 */
export async function runAgent(parts: AgentParts, stop: AbortSignal): Promise<string | undefined> {
  const agent = createAgent(parts);
  const ended = Promise.withResolvers<string | undefined>();
  const down = new AbortController();
  stop.addEventListener("abort", () => ended.resolve(undefined));
  if (stop.aborted) ended.resolve(undefined);
  start(parts, agent, down.signal, ended.resolve);
  const reason = await ended.promise;
  down.abort();
  await Promise.race([shutDown(parts, agent), sleep(parts.clock, SHUTDOWN_MS)]);
  return reason;
}

/** Has what other processes may have changed looked at now and not with the next check, where the mode follows that. */
export async function followForeign(
  { watchForeign, config, log }: Pick<AgentParts, "watchForeign" | "config" | "log">,
  { loop }: { readonly loop: Pick<SyncLoop, "requestCheck"> },
  signal: AbortSignal,
): Promise<void> {
  try {
    await watchForeign?.({ changed: () => loop.requestCheck() }, signal);
  } catch (error) {
    log.warn("Event stream of rule changes lost; changes by other programs are found by the periodic check", {
      syncPeriod: `${config[config.mode].syncPeriodMs}ms`,
      error: errorChainText(error),
    });
  }
}

/** Milliseconds that connections through this process get to end after SIGTERM. */
const DRAIN_MS = 1_000;

function start(parts: AgentParts, agent: Agent, signal: AbortSignal, fail: (reason: string) => void): void {
  const eligibility = new NodeEligibility(parts.config.manifests === undefined);
  openServers(parts, agent, eligibility, signal, fail);
  followInputs(parts, agent, { eligibility, signal, fail });
  void followForeign(parts, agent, signal);
  void parts.replies?.run(signal);
  followFiles({ configFile: parts.config.configFile, kubeconfig: parts.kubeconfig }, parts, signal, fail);
}

async function shutDown(
  { relaying, clock }: AgentParts,
  { loop, keeper, networks, delay, known, serviceHealth }: Agent,
): Promise<void> {
  networks?.stop();
  delay.stop();
  await Promise.all([
    loop.stop(),
    relaying?.close(sleep(clock, DRAIN_MS)),
    ...Array.from(serviceHealth.values(), (servers) => servers.close()),
  ]);
  await Promise.all([keeper.flush(), known.flush()]);
}

/** Milliseconds that the Event about the end gets to reach the API server. */
const LAST_EVENT_MS = 1_000;

/** Opens the health and the metrics port; they are closed when the signal aborts. */
function openServers(
  { config, mode, clock, log, events, relaying }: AgentParts,
  agent: Agent,
  eligibility: NodeEligibility,
  signal: AbortSignal,
  onHardFail: (reason: string) => void,
): void {
  const { metrics, planner, health, connectionLimit, networks } = agent;
  const { bindAddressHardFail: hardFail } = config;
  const onFailure = (server: ServerName, reason: string) => {
    const notified = events?.report(serverNotListening(server, reason));
    if (hardFail) void Promise.race([notified, sleep(clock, LAST_EVENT_MS)]).then(() => onHardFail(reason));
  };
  const common = { hardFail, clock, log, signal, limit: connectionLimit, onFailure };
  const startedAt = performance.timeOrigin;
  const healthz = healthApp({
    report: () => health.report(),
    nodeEligible: () => eligibility.eligible,
    answered: (endpoint, code) => metrics.agent[endpoint].inc({ code: String(code) }),
  });
  const operators = metricsApp(
    {
      metrics: () => metrics.text(),
      proxyMode: () => mode.name,
      configuration: () => configz(config),
      ownership: () => {
        const learned = networks?.report();
        return { ...ownershipReport(planner.ownerships(), learned), ...(learned && { networks: learned }) };
      },
      relays: relaying?.traffic,
      slis: sliMetrics(startedAt),
      build: config.features.statusz ? { version, follows: KUBE_PROXY_RELEASE, startedAt } : undefined,
      flags: config.features.flagz ? config.flags : undefined,
      ...(config.enableProfiling ? { profiles: nodeProfiles() } : {}),
    },
    clock,
  );
  const opened = [bind(operators, { name: "metrics", at: config.metricsBindAddress, ...common })];
  if (config.healthzBindAddress !== undefined) {
    opened.push(bind(healthz, { name: "health", at: config.healthzBindAddress, ...common }));
  }
  signal.addEventListener("abort", () => {
    for (const listener of opened) void listener.then((one) => one?.close());
  });
}
