/** Metrics of parts that an agent may have: conntrack, networks, the fast path, relays, loopback, the API client. */

import type { NodePortRelays, RelayTraffic } from "@fairlead/backend-userspace";
import { IP_FAMILIES } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import type { Conflict, NetworksUpdate, SourceState } from "@fairlead/networks";
import type { RequestObserver } from "@fairlead/watch";
import { Counter, Gauge } from "prom-client";
import { relayLimits } from "../descriptors.ts";
import { durationBuckets, type MetricFactory } from "./registry.ts";

/**
 * Metrics of the conntrack clean-up, with upstream's names, labels and buckets.
 *
 * @param resetsTCP also what is deleted of TCP, which upstream does not touch
 */
export function conntrackMetrics(make: MetricFactory, resetsTCP: boolean) {
  const family = ["ip_family"] as const;
  return {
    duration: make.histogram(
      "kubeproxy_conntrack_reconciler_sync_duration_seconds",
      "Duration of a search for stale conntrack entries in seconds",
      durationBuckets,
      family,
    ),
    deleted: make.counter(
      "kubeproxy_conntrack_reconciler_deleted_entries_total",
      "Stale conntrack entries deleted",
      family,
    ),
    deletedTCP: resetsTCP
      ? make.counter(
          "fairlead_stale_tcp_entries_deleted_total",
          "Conntrack entries of TCP connections deleted because their endpoint is gone (--reset-stale-tcp)",
          family,
        )
      : undefined,
  };
}

export type ConntrackMetrics = ReturnType<typeof conntrackMetrics>;

/** @param devices how many there are now */
export function addFastPathMetrics({ registry }: MetricFactory, devices: () => number): void {
  new Gauge({
    name: "fairlead_fast_path_devices",
    help: "Devices whose packets bypass rules once their connection is established; 0 without a fast path (nftables mode)",
    registers: [registry],
    collect() {
      this.set(devices());
    },
  });
}

/** Packets that rules have refused so far; undefined: unknown now. */
export interface RefusedPackets {
  readonly family: IPFamily;
  readonly protocol: string;
  read(): Promise<number | undefined>;
}

/** Node ports on loopback addresses, with upstream's names and labels (pkg/proxy/metrics). Read on request. */
export function addLoopbackMetrics(
  { registry }: MetricFactory,
  relays: ReadonlyMap<IPFamily, Pick<NodePortRelays, "listeners" | "failures">>,
  refused: readonly RefusedPackets[],
): void {
  const registers = [registry];
  new Gauge({
    name: "kubeproxy_nftables_localhost_nodeport_listeners",
    help: "Node-port relays that listen on loopback addresses",
    labelNames: ["ip_family"],
    registers,
    collect() {
      for (const [ip_family, { listeners }] of relays) this.set({ ip_family }, listeners);
    },
  });
  new Counter({
    name: "kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total",
    help: "Failures of a node-port relay to listen on a loopback address",
    labelNames: ["ip_family"],
    registers,
    collect() {
      this.reset();
      for (const [ip_family, { failures }] of relays) this.inc({ ip_family }, failures);
    },
  });
  // A full sync writes the rules anew, and the kernel counts from 0.
  const last = new Map<RefusedPackets, number>(refused.map((one) => [one, 0]));
  new Counter({
    name: "kubeproxy_nftables_localhost_nodeport_rejected_packets_total",
    help: "UDP and SCTP packets refused at node ports on loopback addresses, and TCP packets without a relay",
    labelNames: ["ip_family", "protocol"],
    registers,
    async collect() {
      for (const [one, before] of last) {
        const packets = (await one.read().catch(() => undefined)) ?? before;
        this.inc({ ip_family: one.family, protocol: one.protocol }, packets < before ? packets : packets - before);
        last.set(one, packets);
      }
    },
  });
}

const STATES: readonly SourceState[] = ["waiting", "listed", "empty", "absent", "forbidden", "unreachable"];

/** What is learned of pod networks; only where that is configured. */
export function networkMetrics(make: MetricFactory) {
  const sourceState = make.gauge("fairlead_cidr_source_state", "1 for the state that a source of pod CIDRs is in", [
    "source",
    "state",
  ] as const);
  const excludedCIDRs = make.gauge("fairlead_excluded_cidrs", "Learned CIDRs of other networks in effect", [
    "source",
    "ip_family",
  ] as const);
  const conflicts = make.gauge(
    "fairlead_cidr_conflicts",
    "Learned CIDRs inside a CIDR of the other side; the longest prefix wins",
    [] as const,
  );
  const held = make.gauge(
    "fairlead_held_cidrs",
    "Learned CIDRs of other networks that lie in ours and wait to be accepted",
    [] as const,
  );
  const manyForeign = make.gauge(
    "fairlead_many_foreign_services",
    "1 while more Services than maxForeignPercent are another network's",
    ["ip_family"] as const,
  );
  return {
    setManyForeign(family: IPFamily, isMany: boolean): void {
      manyForeign.set({ ip_family: family }, isMany ? 1 : 0);
    },
    set(found: readonly Conflict[], { sources, counts, held: waiting }: NetworksUpdate): void {
      conflicts.set(found.length);
      held.set(waiting);
      for (const { source, state, side } of sources) {
        for (const one of STATES) sourceState.set({ source, state: one }, one === state ? 1 : 0);
        if (side !== "excluded") continue;
        const counting = counts.get(source);
        for (const family of IP_FAMILIES) excludedCIDRs.set({ source, ip_family: family }, counting?.[family] ?? 0);
      }
    },
  };
}

export type NetworkMetrics = ReturnType<typeof networkMetrics>;

/** Metrics of userspace mode: what this process carries itself, and its limits. Read on request. */
export function addRelayMetrics(make: MetricFactory, traffic: RelayTraffic, { userspace }: AgentConfig): () => void {
  const sockets = make.gauge("fairlead_relay_sockets", "Open sockets of relays", [] as const);
  const accepted = make.counter(
    "fairlead_relay_accepted_total",
    "TCP connections and UDP flows connected to an endpoint",
    ["protocol"] as const,
  );
  const refused = make.counter(
    "fairlead_relay_refused_total",
    "TCP connections and UDP flows refused: limit reached, no endpoint, none reachable, or client not local",
    ["reason"] as const,
  );
  const passedOver = make.counter(
    "fairlead_relay_endpoints_passed_over_total",
    "Endpoints that refused a connection before another endpoint was tried",
    [] as const,
  );
  const idled = make.counter(
    "fairlead_relay_idle_total",
    "Connections and flows ended by the idle timeout",
    [] as const,
  );
  const bytes = make.counter("fairlead_relay_bytes_total", "Bytes of datagrams and of connections that have ended", [
    "direction",
  ] as const);
  const limits = make.gauge(
    "fairlead_relay_limit",
    "Limits in force: sockets in total and per service port, idle timeout in seconds",
    ["limit"] as const,
  );
  limits.set({ limit: "sockets" }, traffic.counts.maxSockets);
  limits.set({ limit: "sockets-per-service" }, relayLimits(userspace).maxSocketsPerService);
  limits.set({ limit: "tcp-idle-seconds" }, userspace.tcpIdleTimeoutMs / 1000);
  limits.set({ limit: "udp-idle-seconds" }, userspace.udpIdleTimeoutMs / 1000);
  return () => {
    const { counts } = traffic;
    for (const counter of [accepted, refused, passedOver, idled, bytes]) counter.reset();
    sockets.set(counts.sockets);
    for (const [protocol, count] of Object.entries(counts.accepted)) accepted.inc({ protocol }, count);
    for (const [reason, count] of Object.entries(counts.refused)) refused.inc({ reason }, count);
    passedOver.inc(counts.passedOver);
    idled.inc(counts.idled);
    for (const [direction, count] of Object.entries(counts.bytes)) bytes.inc({ direction }, count);
  };
}

/** client-go's. */
const BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

/** Requests to the API server, with the names, labels and buckets of client-go's metrics. */
export function restClientMetrics(make: MetricFactory): RequestObserver {
  const labels = ["verb", "host"] as const;
  const requests = make.counter(
    "rest_client_requests_total",
    "Requests to the API server by status code (<error> without an answer), method and host",
    ["code", "method", "host"] as const,
  );
  const duration = make.histogram(
    "rest_client_request_duration_seconds",
    "Seconds from a request to the response header, without watches",
    BUCKETS,
    labels,
  );
  const limited = make.histogram(
    "rest_client_rate_limiter_duration_seconds",
    "Seconds for which a request waited because of clientConnection's qps and burst",
    BUCKETS,
    labels,
  );
  return {
    answered({ method, host, code, watch, milliseconds }) {
      requests.inc({ code: code === undefined ? "<error>" : String(code), method, host });
      if (!watch) duration.observe({ verb: method, host }, milliseconds / 1000);
    },
    waited({ method, host, milliseconds }) {
      limited.observe({ verb: method, host }, milliseconds / 1000);
    },
  };
}
