import type { RelayTraffic } from "@fairlead/backend-userspace";
import type { AgentConfig } from "@fairlead/config";
import type { MetricFactory } from "./registry.ts";

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
    "TCP connections and UDP flows refused: limit reached, no endpoint reachable, or no endpoint",
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
  limits.set({ limit: "sockets-per-service" }, userspace.maxSocketsPerService);
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
