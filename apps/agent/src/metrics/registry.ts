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

/** Milliseconds between two looks at the event loop's lag. Each wakes an idle process: with the default of 10 they took it a hundredth of a core. */
const LAG_EVERY_MS = 1000;

/** process_* and nodejs_*: memory, CPU time, file descriptors, event-loop lag, garbage collection. */
export function addProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS });
}
