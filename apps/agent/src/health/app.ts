import { Hono } from "hono";
import { goTime, json } from "../http/answers.ts";
import type { HealthReport } from "./proxy-health.ts";

export interface HealthSources {
  report(): HealthReport;
  /** False while the own Node is being deleted or about to be scaled down, or not known yet. */
  nodeEligible(): boolean;
  /** Each answer with its status code. */
  answered(endpoint: "healthz" | "livez", code: 200 | 503): void;
}

/** /healthz (this node should get traffic) and /livez (the proxy works) of the health port, in upstream's words. */
export function healthApp(sources: HealthSources): Hono {
  const app = new Hono();
  app.get("/healthz", (c) => {
    const nodeEligible = sources.nodeEligible();
    const report = sources.report();
    const code = report.healthy && nodeEligible ? 200 : 503;
    sources.answered("healthz", code);
    return c.body(body(report, code, { nodeEligible }), code, json);
  });
  app.get("/livez", (c) => {
    const report = sources.report();
    const code = report.healthy ? 200 : 503;
    sources.answered("livez", code);
    return c.body(body(report, code, {}), code, json);
  });
  return app;
}

/** While healthy, lastUpdated is the current time: readers of old take it for a sign of life. */
function body(report: HealthReport, code: 200 | 503, eligibility: { nodeEligible?: boolean }): string {
  const status = Object.entries(report.status)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([family, one]) => [family, { lastUpdated: goTime(one.lastUpdated), healthy: one.healthy }] as const);
  return JSON.stringify({
    lastUpdated: goTime(code === 200 ? report.currentTime : report.lastUpdated),
    currentTime: goTime(report.currentTime),
    ...eligibility,
    healthy: report.healthy,
    ...(status.length === 0 ? {} : { status: Object.fromEntries(status) }),
  });
}
