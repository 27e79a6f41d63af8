/** All metrics of an agent, by its mode and configuration. */

import { KUBE_PROXY_RELEASE } from "@fairlead/config";
import type { ClusterState, ModeFacts } from "@fairlead/core";
import type { Nfacct } from "@fairlead/kernel";
import type { Counter, Gauge } from "prom-client";
import { version } from "../about/version.ts";
import { conntrackMetrics, networkMetrics, restClientMetrics } from "./part-metrics.ts";
import {
  addBuildMetrics,
  addPacketCounters,
  addProcessMetrics,
  type MetricFactory,
  metricFactory,
} from "./registry.ts";
import { addServiceMetrics, type ReadServiceConnections } from "./service-metrics.ts";
import { agentMetrics, failureMetrics, iptablesMetrics, type SyncMetrics, syncMetrics } from "./sync-metrics.ts";

export type MeasuredMode = Pick<ModeFacts, "name" | "needs" | "objects" | "packetCounters">;

export type Metrics = ReturnType<typeof createMetrics>;

interface MetricsOptions {
  /** Absent: there is none, and only what all modes have is measured. */
  readonly mode?: MeasuredMode;
  /** Reads the counters of packets that the mode's rules have. */
  readonly nfacct?: Pick<Nfacct, "read">;
  /** Adds metrics of the mode; what it gives, if anything, is called before they are read. */
  readonly addMore?: ((make: MetricFactory) => (() => void) | undefined) | undefined;
  /** Pod networks are learned. Default false. */
  readonly learns?: boolean;
  /** What services have for connections; absent: not configured. */
  readonly connections?: ReadServiceConnections | undefined;
  /** Default: it is the node's first proxy. */
  readonly serviceProxyName?: string;
  /** TCP connections of endpoints that are gone are reset. Default false. */
  readonly resetsTCP?: boolean;
}

export function createMetrics(state: ClusterState, options: MetricsOptions = {}) {
  const { mode, nfacct, addMore, learns = false, connections, resetsTCP = false, serviceProxyName = "" } = options;
  const make = metricFactory();
  const sync = syncMetrics(make);
  const conntrack = conntrackMetrics(make, resetsTCP);
  const withIptables = mode === undefined || mode.needs.iptables.length > 0;
  const writes = withIptables ? { iptables: iptablesMetrics(make) } : { failures: failureMetrics(make, mode.name) };
  const agent = agentMetrics(make);
  const objects = mode && modeObjects(make, mode);
  addPacketCounters(make.registry, mode?.packetCounters ?? {}, async (name) => (await nfacct?.read(name))?.packets);
  if (connections !== undefined) addServiceMetrics(make.registry, connections);
  addProcessMetrics(make.registry);
  addBuildMetrics(make, version, KUBE_PROXY_RELEASE, serviceProxyName);
  const refresh = addMore?.(make);
  return {
    sync,
    conntrack,
    /** `iptables` of modes that write such rules, `failures` of the others. */
    ...writes,
    agent,
    /** What is learned of pod networks; absent: nothing is. */
    networks: learns ? networkMetrics(make) : undefined,
    requests: restClientMetrics(make),
    /** What the mode programs alongside iptables rules; absent: nothing. */
    objects,
    async text() {
      copyChangeCounts(sync, state);
      refresh?.();
      return { text: await make.registry.metrics(), contentType: make.registry.contentType };
    },
  };
}

function modeObjects(make: MetricFactory, { name, objects: { own } }: MeasuredMode) {
  return own && make.gauge(`fairlead_${name}_objects`, own.help, ["ip_family", "kind"] as const);
}

function copyChangeCounts(metrics: SyncMetrics, state: ClusterState): void {
  const { serviceChanges, endpointChanges } = state;
  set(metrics.serviceChangesTotal, metrics.serviceChangesPending, serviceChanges);
  set(metrics.endpointChangesTotal, metrics.endpointChangesPending, endpointChanges);
}

function set(total: Counter<never>, pending: Gauge<never>, counts: { total: number; pending: number }): void {
  total.reset();
  total.inc(counts.total);
  pending.set(counts.pending);
}
