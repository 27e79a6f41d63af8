import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** Makes metrics in one registry; each takes its name, help and labels. */
export interface MetricFactory {
  readonly registry: Registry;
  counter<L extends string>(name: string, help: string, labelNames?: readonly L[]): Counter<L>;
  gauge<L extends string>(name: string, help: string, labelNames?: readonly L[]): Gauge<L>;
  histogram<L extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames?: readonly L[],
  ): Histogram<L>;
}

export function metricFactory(): MetricFactory {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    counter: (name, help, labelNames = []) => new Counter({ name, help, labelNames, registers }),
    gauge: (name, help, labelNames = []) => new Gauge({ name, help, labelNames, registers }),
    histogram: (name, help, buckets, labelNames = []) =>
      new Histogram({ name, help, buckets: [...buckets], labelNames, registers }),
  };
}

/**
 * Metrics for which the library looks at the event loop a hundred times a second: that took an idle process a hundredth
 * of a core. What the loop was busy for is reported instead, which costs nothing in between.
 */
const SAMPLED = ["min", "max", "mean", "stddev", "p50", "p90", "p99"].map(
  (what) => `nodejs_eventloop_lag_${what}_seconds`,
);
/** The library has no way to leave them out, so it looks once an hour. */
const SAMPLE_EVERY_MS = 3_600_000;

/** process_* and nodejs_*: memory, CPU time, file descriptors, how busy the event loop is, garbage collection. */
export function addProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: SAMPLE_EVERY_MS });
  for (const name of SAMPLED) registry.removeSingleMetric(name);
  let last = performance.eventLoopUtilization();
  new Gauge({
    name: "nodejs_eventloop_utilization_ratio",
    help: "Share of time since the last scrape in which the event loop was busy",
    registers: [registry],
    collect() {
      const now = performance.eventLoopUtilization();
      this.set(performance.eventLoopUtilization(now, last).utilization);
      last = now;
    },
  });
}
