import { iptablesFacts } from "@fairlead/backend-iptables";
import { ipvsFacts } from "@fairlead/backend-ipvs";
import { nftablesFacts } from "@fairlead/backend-nftables";
import { createTraffic, userspaceFacts } from "@fairlead/backend-userspace";
import { parseArguments } from "@fairlead/config";
import { ClusterState } from "@fairlead/core";
import { markdownTable } from "@fairlead/tooling/markdown-table";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { createMetrics, type MeasuredMode } from "../src/metrics/metrics.ts";
import { addFastPathMetrics, addLoopbackMetrics, addRelayMetrics } from "../src/metrics/part-metrics.ts";

interface Documented {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

const MODES: readonly MeasuredMode[] = [iptablesFacts, ipvsFacts, nftablesFacts, userspaceFacts];

/** docs/metrics.md: every metric that an agent may have, in any mode and with every option, from the registries. */
export function metricsPage(): string {
  const all = MODES.flatMap((mode) => metricsOf(mode).map((metric): [string, Documented] => [metric.name, metric]));
  const metrics = [...new Map(all).values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const own = metrics.filter(({ name }) => name.startsWith("fairlead_"));
  return `${[
    "# Metrics",
    "",
    "What `/metrics` of an agent may have: in any mode, with every option. A script writes this page from the registry",
    "(`pnpm --filter @fairlead/agent run metrics`). Node's own `process_*` and `nodejs_*` are left out;",
    "[the agent's README](../apps/agent/README.md#metrics) says what differs from kube-proxy.",
    "",
    "## Fairlead's own",
    "",
    ...tableOf(own),
    "",
    "## Those of kube-proxy and client-go, with their names, labels and buckets",
    "",
    ...tableOf(metrics.filter((one) => !own.includes(one))),
  ].join("\n")}\n`;
}

function metricsOf(mode: MeasuredMode): readonly Documented[] {
  const registries: Registry[] = [];
  createMetrics(new ClusterState(), {
    mode,
    nfacct: { read: async () => undefined },
    connections: async () => undefined,
    learns: true,
    resetsTCP: true,
    serviceProxyName: "second",
    addMore(make) {
      registries.push(make.registry);
      addRelayMetrics(make, createTraffic(), defaults());
      addLoopbackMetrics(make, new Map(), []);
      addFastPathMetrics(make, () => 0);
      return undefined;
    },
  });
  return registries.flatMap((registry) => registry.getMetricsAsArray()).flatMap(documented);
}

function documented(metric: unknown): readonly Documented[] {
  if (!(metric instanceof Counter || metric instanceof Gauge || metric instanceof Histogram)) return [];
  // The library keeps them to itself.
  const { name, help, labelNames }: Record<"name" | "help" | "labelNames", unknown> = Object.assign(
    { name: "", help: "", labelNames: [] },
    metric,
  );
  if (/^(?:process|nodejs)_/.test(String(name))) return [];
  const labels = Array.isArray(labelNames) ? labelNames.map(String) : [];
  return [{ name: String(name), type: metric.constructor.name.toLowerCase(), help: String(help), labels }];
}

function defaults() {
  const parsed = parseArguments([], { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(`the defaults are wrong: ${JSON.stringify(parsed)}`);
  return parsed.config;
}

const HEAD = ["metric", "type", "labels", "meaning"] as const;

function tableOf(metrics: readonly Documented[]): readonly string[] {
  const rows = metrics.map(({ name, type, help, labels }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(", ") || "–",
    help.replaceAll("|", "\\|"),
  ]);
  return markdownTable(HEAD, rows);
}
