/** A registry of metrics and what the process itself has: builds, buckets, packets counted by the kernel. */

import type { PacketCounters } from "@fairlead/core";
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

/** The library has no way to leave them out, so it looks once an hour. */
const SAMPLE_EVERY_MS = 3_600_000;

/**
 * Metrics for which the library looks at the event loop a hundred times a second: that took an idle process a hundredth
 * of a core. What the loop was busy for is reported instead, which costs nothing in between.
 */
const SAMPLED = ["min", "max", "mean", "stddev", "p50", "p90", "p99"].map(
  (what) => `nodejs_eventloop_lag_${what}_seconds`,
);

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

/** Go's names of what Node calls otherwise. */
const GO_ARCH: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

const BUILD_LABELS = ["version", "node_version", "platform", "service_proxy_name"] as const;

/**
 * What runs here: Fairlead's own version, and, for dashboards that show components by version, the release of
 * kube-proxy that it follows, with kube-proxy's labels.
 */
export function addBuildMetrics(make: MetricFactory, version: string, follows: string, serviceProxyName: string): void {
  const platform = `${process.platform}/${GO_ARCH[process.arch] ?? process.arch}`;
  const [major = "", minor = ""] = follows.split(".");
  make
    .gauge("fairlead_build_info", "1, labeled with the running version", BUILD_LABELS)
    .set({ version, node_version: process.version, platform, service_proxy_name: serviceProxyName }, 1);
  const unknown = { git_commit: "", git_tree_state: "", build_date: "", go_version: "", compiler: "" };
  make
    .gauge("kubernetes_build_info", "1, labeled with the kube-proxy release that Fairlead follows", [
      ...["major", "minor", "git_version", "git_commit", "git_tree_state"],
      "build_date",
      "go_version",
      "compiler",
      "platform",
    ])
    .set({ major, minor, git_version: `v${follows}+fairlead.${version}`, ...unknown, platform }, 1);
}

/** Upstream's buckets for durations: 1 ms, doubled up to 16.384 s. */
export const durationBuckets: readonly number[] = Array.from({ length: 15 }, (_, n) =>
  Number((0.001 * 2 ** n).toFixed(3)),
);

/** Upstream's buckets for the time from a change in the cluster to its rules: a quarter second to five minutes. */
export const programmingBuckets: readonly number[] = [
  0.25,
  0.5,
  ...range(1, 59, 1),
  ...range(60, 115, 5),
  ...range(120, 300, 30),
];

/**
 * Counters that the kernel keeps and that are read when the metrics are.
 *
 * @param names absent: the mode counts nothing, and the metric stays 0
 * @param read packets counted so far under a name; undefined: the kernel has no such counter
 */
export function addPacketCounters(
  registry: Registry,
  names: PacketCounters,
  read: (name: string) => Promise<number | undefined>,
): void {
  const add = (name: string, help: string, source: string | undefined) =>
    new Counter({
      name: `kubeproxy_iptables_${name}_packets_total`,
      help,
      registers: [registry],
      async collect() {
        const packets = source === undefined ? 0 : await read(source).catch(() => undefined);
        this.reset();
        this.inc(packets ?? 0);
      },
    });
  add("ct_state_invalid_dropped", "Packets dropped because conntrack found them invalid", names.invalidDropped);
  add("localhost_nodeports_accepted", "Packets accepted for node ports on loopback addresses", names.localhostAccepted);
}

function range(from: number, to: number, step: number): number[] {
  return Array.from({ length: (to - from) / step + 1 }, (_, i) => from + i * step);
}
