import type { Frontend, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { renderServerKey, type VirtualServer, type VirtualServerKey } from "@fairlead/netfilter";
import type { PlanContext } from "./context.ts";
import { endpointsOf, servedFrontends } from "./frontends.ts";
import { askedScheduler, type SchedulerOptions, schedulerOptions } from "./schedulers.ts";

/** A virtual server that has to be there. Its destinations have weight 1 and are reached by masquerading (`-m`). */
export interface WantedServer {
  /** `renderServerKey` of the server. */
  readonly key: string;
  readonly server: VirtualServer;
  readonly endpoints: readonly PlanEndpoint[];
  /**
   * Where connections to endpoints that are gone are to end: the endpoints that there are, ready or not, of which
   * others drain. Absent: whatever is not wanted any more drains.
   */
  readonly present?: readonly PlanEndpoint[];
  /** Of a node port. One with the address and port of another service's frontend gives way to it. */
  readonly nodePort: boolean;
}

/** The virtual servers of a group, each once: an external address may be a load balancer's as well. */
export function wantedServers(group: ServicePortGroup, context: PlanContext): readonly WantedServer[] {
  const servers = new Map<string, WantedServer>();
  const options = serverOptions(group, context);
  const ends = context.resetStaleTCP && group.protocol === "TCP" ? { present: group.present ?? group.serving } : {};
  for (const frontend of servedFrontends(group)) {
    for (const address of frontendAddresses(frontend, context)) {
      const where: VirtualServerKey = {
        family: group.family,
        protocol: group.protocol,
        address,
        port: frontend.port,
      };
      const key = renderServerKey(where);
      if (servers.has(key)) continue;
      const endpoints = endpointsOf(group, frontend);
      const server = { ...where, ...options };
      servers.set(key, { key, server, endpoints, ...ends, nodePort: frontend.at === "node-port" });
    }
  }
  return [...servers.values()];
}

/** The frontend's own address, or those that node ports are served on. */
export function frontendAddresses(frontend: Frontend, context: PlanContext): readonly string[] {
  return frontend.address === undefined ? context.nodePortAddresses : [frontend.address];
}

function serverOptions(group: ServicePortGroup, context: PlanContext): Omit<VirtualServer, keyof VirtualServerKey> {
  const { affinitySeconds } = group;
  return {
    ...schedulerOf(group, context),
    ...(affinitySeconds !== undefined && { persistenceSeconds: affinitySeconds }),
  };
}

function schedulerOf(group: ServicePortGroup, context: PlanContext): SchedulerOptions {
  const asked = askedScheduler(group);
  return asked === undefined || context.lacking.has(asked.scheduler) ? schedulerOptions(context.scheduler) : asked;
}
