import { sleep } from "@fairlead/base";
import { KUBE_PROXY_RELEASE } from "@fairlead/config";
import { ownershipReport } from "@fairlead/intake";
import { version } from "../about/version.ts";
import { serverNotListening } from "../events/port-events.ts";
import { healthApp } from "../health/app.ts";
import { bind, type ServerName } from "../http/bind.ts";
import { configz } from "../http/configz.ts";
import { metricsApp } from "../http/metrics-app.ts";
import { nodeProfiles } from "../http/profiles.ts";
import { sliMetrics } from "../metrics/sli-metrics.ts";
import type { NodeEligibility } from "./eligibility.ts";
import type { Agent, AgentParts } from "./parts.ts";

/** Milliseconds that the Event about the end gets to reach the API server. */
const LAST_EVENT_MS = 1_000;

/** Opens the health and the metrics port; they are closed when the signal aborts. */
export function openServers(
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
