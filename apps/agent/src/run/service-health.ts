import { errorChainText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { healthCheckNotListening } from "../events/port-events.ts";
import type { ProxyHealth } from "../health/proxy-health.ts";
import { ServiceHealthServers } from "../health/service-health.ts";
import type { ConnectionLimit } from "../http/connection-limit.ts";
import { listen } from "../http/listen.ts";
import type { AgentParts } from "./parts.ts";

/** The health-check node ports of one family; what becomes of each is logged, and what fails is an Event as well. */
export function serviceHealthServers(
  { log, events, clock, random }: Pick<AgentParts, "log" | "events" | "clock" | "random">,
  family: IPFamily,
  health: ProxyHealth,
  limit: ConnectionLimit,
): ServiceHealthServers {
  return new ServiceHealthServers({
    family,
    listen: (app, at, ipv6Only) => listen(app, at, ipv6Only, limit),
    clock,
    random,
    proxyHealthy: () => health.report().healthy,
    onOpened({ service }, { host, port }, wasRefused) {
      const fields = { service, port, address: host, ipFamily: family };
      if (wasRefused) log.info("Health-check node port opened after earlier failures", fields);
      else log.verbose(2, "Health-check node port opened", fields);
    },
    onRefused(check, at, error) {
      log.error("Cannot open health-check node port on this address; traffic is not affected, retrying", {
        service: check.service,
        port: check.port,
        address: at.host,
        ipFamily: family,
        error: errorChainText(error),
      });
      void events?.report(healthCheckNotListening(check, at, error));
    },
  });
}
