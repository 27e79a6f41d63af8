/** Events about Services and this node. */

import { errorChainText, socketText } from "@fairlead/base";
import { type HealthCheck, type IPFamily, type Problem, serviceOfProblem } from "@fairlead/core";
import type { NodeEvent, NodeEvents } from "@fairlead/intake";
import type { HostPort, ServerName } from "./http/listen.ts";
import type { SyncFollower } from "./sync/follower.ts";

/** One failure is repaired by the next sync; more of them in a row are a state that needs an operator. */
const TOO_MANY = 3;

/** An Event when syncs go on failing, and for objects that the kernel refuses. Nothing waits for it to be sent. */
export function eventFollower(events: Pick<NodeEvents, "report">): SyncFollower {
  const failures = new Map<IPFamily, number>();
  return {
    ran({ family, outcome }) {
      if (outcome.kind === "synced") {
        failures.delete(family);
        const [first, ...more] = outcome.report.refused ?? [];
        if (first !== undefined) void events.report(objectsRefused(family, first, more.length));
      }
      if (outcome.kind !== "failed") return;
      const count = (failures.get(family) ?? 0) + 1;
      failures.set(family, count);
      if (count < TOO_MANY) return;
      const message = `Failed to write the ${family} rules ${count} times in a row; previous rules stay in effect, retrying: ${errorChainText(outcome.error)}`;
      void events.report({ type: "Warning", reason: "SyncFailed", message });
    },
  };
}

function objectsRefused(family: IPFamily, first: string, more: number): NodeEvent {
  const others = more === 0 ? "" : ` and ${more} more, which the log names`;
  const message = `The kernel refused objects of ${family}; all others are in place, the next full sync tries them again: ${first}${others}`;
  return { type: "Warning", reason: "ObjectsRefused", message };
}

/**
 * One Event on each Service of which something is lost, open or cannot be followed: its owner does not read the agents'
 * logs.
 */
export function problemEvents(events: Pick<NodeEvents, "report">): (problems: readonly Problem[]) => void {
  return (problems) => {
    const notable = problems.filter(({ field, effect }) =>
      effect === undefined ? field === "metadata.annotations" : effect !== "note",
    );
    for (const [service, own] of Map.groupBy(notable, serviceOfProblem)) {
      const [first] = [...own].sort((a, b) => rank(a) - rank(b));
      if (service === undefined || first === undefined) continue;
      const [namespace = "", name = ""] = service.split("/");
      const more = own.length === 1 ? "" : ` (and ${own.length - 1} more: fairlead explain ${service})`;
      const message = eventMessage(first) + more;
      void events.report({ type: "Warning", reason: eventReason(first), message, service: { namespace, name } });
    }
  };
}

const RANKS: readonly Problem["effect"][] = ["open", "lost"];

function rank({ effect }: Problem): number {
  const at = RANKS.indexOf(effect);
  return at < 0 ? RANKS.length : at;
}

function eventReason({ effect }: Problem): string {
  return effect === undefined
    ? "InvalidAnnotation"
    : { open: "TrafficOpen", lost: "TrafficLost", note: "Notice" }[effect];
}

function eventMessage({ kind, name, field, value, reason, effect }: Problem): string {
  const object = kind === "Service" ? "" : `${kind} ${name}: `;
  const what = `${object}${effect === undefined ? reason : `${field} ${reason}`}`;
  return value === "" ? what : `${what}; its value is ${value}`;
}

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
