import { goTime, JSON_TYPE } from "../http/answers.ts";
import { type App, routes } from "../http/app.ts";
import type { HealthReport } from "./proxy-health.ts";

export interface HealthSources {
  report(): HealthReport;
  /** False while the own Node is being deleted or about to be scaled down, or not known yet. */
  nodeEligible(): boolean;
  /** Each answer with its status code. */
  answered(endpoint: "healthz" | "livez", code: 200 | 503): void;
}

/**
 * /healthz (this node should get traffic) and /livez (the proxy works) of the health port, in upstream's words. Unlike
 * upstream's, /healthz is 503 until each family's first rules are in place, with a word that says so.
 */
export function healthApp(sources: HealthSources): App {
  return routes({
    "/healthz": () => {
      const nodeEligible = sources.nodeEligible();
      const report = sources.report();
      const { healthy, rulesInPlace } = report;
      const status = healthy && nodeEligible && rulesInPlace ? 200 : 503;
      sources.answered("healthz", status);
      const own = { nodeEligible, ...(rulesInPlace ? {} : { rulesInPlace }) };
      return { status, headers: JSON_TYPE, body: body(report, status, own) };
    },
    "/livez": () => {
      const report = sources.report();
      const status = report.healthy ? 200 : 503;
      sources.answered("livez", status);
      return { status, headers: JSON_TYPE, body: body(report, status, {}) };
    },
  });
}

/** While healthy, lastUpdated is the current time: readers of old take it for a sign of life. */
function body(report: HealthReport, code: 200 | 503, own: { nodeEligible?: boolean; rulesInPlace?: boolean }): string {
  const status = Object.entries(report.status)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([family, one]) => [family, { lastUpdated: goTime(one.lastUpdated), healthy: one.healthy }] as const);
  return JSON.stringify({
    lastUpdated: goTime(code === 200 ? report.currentTime : report.lastUpdated),
    currentTime: goTime(report.currentTime),
    ...own,
    healthy: report.healthy,
    ...(status.length === 0 ? {} : { status: Object.fromEntries(status) }),
  });
}
