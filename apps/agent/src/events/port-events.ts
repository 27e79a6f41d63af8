import { errorChainText, socketText } from "@fairlead/base";
import type { HealthCheck } from "@fairlead/core";
import type { NodeEvent } from "@fairlead/intake";
import type { ServerName } from "../http/bind.ts";
import type { HostPort } from "../http/listen.ts";

const REASONS: Readonly<Record<ServerName, string>> = {
  health: "FailedToStartProxierHealthcheck",
  metrics: "FailedToStartMetricServer",
};

/**
 * Ports that this process cannot listen on, with kube-proxy's reasons and actions (cmd/kube-proxy/app/server.go,
 * pkg/proxy/healthcheck/service_health.go).
 */
export function serverNotListening(server: ServerName, message: string): NodeEvent {
  return { type: "Warning", reason: REASONS[server], action: "StartKubeProxy", message };
}

export function healthCheckNotListening(check: HealthCheck, { host, port }: HostPort, error: unknown): NodeEvent {
  const { namespace, name } = check;
  const on = socketText(host, port);
  const message = `Cannot open the health-check node port on ${on}: ${errorChainText(error)}`;
  return {
    type: "Warning",
    reason: "FailedToStartServiceHealthcheck",
    action: "Listen",
    message,
    service: { namespace, name },
  };
}
