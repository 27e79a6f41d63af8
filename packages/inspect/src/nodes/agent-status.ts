import { fieldsOf, parseJSON } from "@fairlead/base";
import type { Ownership } from "@fairlead/core";
import { samplesOf } from "./samples.ts";
import type { AgentStatus, OwnerCounts } from "./status.ts";

/** What an agent's pages say; absent: it has no such page, or did not give it. */
export interface AgentPages {
  /** `/metrics` of the metrics port, Prometheus' text format. */
  readonly metrics?: string | undefined;
  /** `/proxyMode` of the metrics port. */
  readonly proxyMode?: string | undefined;
  /** `/ownership` of the metrics port; kube-proxy has none. */
  readonly ownership?: string | undefined;
  /** `/livez` of the health port, whatever its status code. */
  readonly livez?: string | undefined;
}

/** Reads what an agent, Fairlead's or kube-proxy, says of itself. What cannot be read is left out. */
export function agentStatus({ metrics = "", proxyMode, ownership, livez }: AgentPages): AgentStatus {
  const { version: build, service_proxy_name: serviceProxyName = "" } =
    samplesOf(metrics, "fairlead_build_info")[0]?.labels ?? {};
  const upstream = samplesOf(metrics, "kubernetes_build_info")[0]?.labels["git_version"];
  const version = build === undefined ? upstream : `v${build}`;
  const program = build === undefined ? "kube-proxy" : "fairlead";
  const mode = proxyMode?.trim();
  const healthy = healthIn(livez);
  const lastSync = lastSyncIn(metrics);
  const owners = ownersIn(ownership);
  return {
    ...(version !== undefined && { program, version }),
    ...(serviceProxyName !== "" && { serviceProxyName }),
    ...(mode !== undefined && mode !== "" && { mode }),
    ...(healthy !== undefined && { healthy }),
    ...(lastSync !== undefined && { lastSync }),
    ...(owners !== undefined && { owners }),
  };
}

/** Of the families the one that is behind. */
function lastSyncIn(metrics: string): string | undefined {
  const times = samplesOf(metrics, "kubeproxy_sync_proxy_rules_last_timestamp_seconds").map(({ value }) => value);
  const seconds = Math.min(...times);
  return Number.isFinite(seconds) && seconds > 0 ? new Date(seconds * 1000).toISOString() : undefined;
}

function healthIn(livez: string | undefined): boolean | undefined {
  const { healthy } = fieldsOf(parseJSON(livez ?? ""));
  return typeof healthy === "boolean" ? healthy : undefined;
}

function ownersIn(ownership: string | undefined): OwnerCounts | undefined {
  const { services } = fieldsOf(parseJSON(ownership ?? ""));
  if (!Array.isArray(services)) return undefined;
  const of = (owner: Ownership) => services.filter((one) => fieldsOf(one)["ownership"] === owner).length;
  return { ours: of("ours"), foreign: of("foreign"), mixed: of("mixed") };
}
