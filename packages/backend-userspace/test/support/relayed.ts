import { systemClock } from "@fairlead/base";
import type { PlanEndpoint } from "@fairlead/core";
import { createTraffic, type RelayTraffic } from "../../src/index.ts";
import { Balancer } from "../../src/relay/balancer.ts";
import { openRelay } from "../../src/relay/open.ts";
import type { OpenRelay, RelayRequest } from "../../src/relay/relay.ts";
import { SocketBudget } from "../../src/relay/traffic.ts";
import { serveSets } from "./serve-sets.ts";
import type { Opened } from "./servers.ts";

export interface Relayed {
  readonly relay: OpenRelay;
  readonly traffic: RelayTraffic;
  /** Puts others behind it. */
  serve(endpoints: readonly PlanEndpoint[]): void;
}

export interface RelayedOptions extends Partial<Omit<RelayRequest, "service">> {
  readonly affinitySeconds?: number;
  readonly maxSocketsPerService?: number;
}

/** A relay on a real socket, with endpoints behind it. */
export async function relayed(
  opened: Opened,
  protocol: "TCP" | "UDP",
  endpoints: readonly PlanEndpoint[],
  { affinitySeconds, maxSocketsPerService = 1_000, ...options }: RelayedOptions = {},
): Promise<Relayed> {
  const clock = options.clock ?? systemClock;
  const balancer = new Balancer(() => clock.monotonic());
  const serve = (cluster: readonly PlanEndpoint[]) =>
    serveSets(balancer, { cluster, local: [], ...(affinitySeconds !== undefined && { affinitySeconds }) });
  serve(endpoints);
  const traffic = options.traffic ?? createTraffic();
  const relay = await openRelay({
    protocol,
    address: "127.0.0.1",
    port: 0,
    traffic,
    clock,
    udpIdleTimeout: 250,
    tcpIdleTimeout: 0,
    onProblem: (problem) => {
      throw new Error(problem);
    },
    ...options,
    service: {
      name: "default/web",
      choose: (client, failed) => balancer.choose("cluster", client, failed),
      has: (endpoint) => balancer.has("cluster", endpoint),
      sockets: new SocketBudget(maxSocketsPerService),
    },
  });
  let open = true;
  const close = () => {
    if (open) relay.close();
    open = false;
  };
  opened.defer(close);
  return {
    relay: { ...relay, close },
    traffic,
    serve(next) {
      serve(next);
      for (const _ of relay.refresh());
    },
  };
}
