import { ownershipReport } from "@fairlead/intake";
import { healthApp } from "../health/app.ts";
import { bind } from "../http/bind.ts";
import { metricsApp } from "../http/metrics-app.ts";
import { nodeProfiles } from "../http/profiles.ts";
import type { Assembled } from "./assemble.ts";
import type { NodeEligibility } from "./eligibility.ts";
import type { AgentParts } from "./parts.ts";

/** Opens the health and the metrics port; they are closed when the signal aborts. */
export function openServers(
  { config, mode, clock, log }: AgentParts,
  agent: Assembled,
  eligibility: NodeEligibility,
  signal: AbortSignal,
  onHardFail: (reason: string) => void,
): void {
  const { metrics, planner, health } = agent;
  const common = { hardFail: config.bindAddressHardFail, clock, log, signal, onHardFail };
  const healthz = healthApp({
    report: () => health.report(),
    nodeEligible: () => eligibility.eligible,
    answered: (endpoint, code) => metrics.agent[endpoint].inc({ code: String(code) }),
  });
  const operators = metricsApp({
    metrics: () => metrics.text(),
    proxyMode: () => mode.mode,
    configuration: () => config.kubeProxyConfiguration,
    ownership: () => ownershipReport(planner.ownerships()),
    ...(config.enableProfiling ? { profiles: nodeProfiles } : {}),
  });
  const opened = [bind(operators, { name: "metrics", at: config.metricsBindAddress, ...common })];
  if (config.healthzBindAddress !== undefined) {
    opened.push(bind(healthz, { name: "health", at: config.healthzBindAddress, ...common }));
  }
  signal.addEventListener("abort", () => {
    for (const listener of opened) void listener.then((one) => one?.close());
  });
}
