import { metricFactory } from "./registry.ts";

/**
 * Kubernetes' component SLIs (KEP-3466), as kube-proxy has them: the results of the metrics port's own /healthz, whose
 * one check is `ping`. In a registry of their own, which is served at /metrics/slis.
 */
export function sliMetrics(startedAt: number) {
  const make = metricFactory();
  const [name, type] = ["ping", "healthz"];
  const healthcheck = make.gauge("kubernetes_healthcheck", "Result of a health check: 1 if it succeeded", [
    "name",
    "type",
  ] as const);
  const total = make.counter("kubernetes_healthchecks_total", "Results of all health checks", [
    "name",
    "type",
    "status",
  ] as const);
  make.gauge("process_start_time_seconds", "Start time of the process, seconds since the epoch").set(startedAt / 1000);
  return {
    succeeded() {
      healthcheck.set({ name, type }, 1);
      total.inc({ name, type, status: "success" });
    },
    reset() {
      healthcheck.reset();
      total.reset();
    },
    text: async () => ({ text: await make.registry.metrics(), contentType: make.registry.contentType }),
  };
}

export type SliMetrics = ReturnType<typeof sliMetrics>;
