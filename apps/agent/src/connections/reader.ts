import type { RelayTraffic } from "@fairlead/backend-userspace";
import { type Clock, errorChainText, slices } from "@fairlead/base";
import type { ServiceMetricsSettings } from "@fairlead/config";
import { type Planner, type ServiceKey, splitKey } from "@fairlead/core";
import type { Kernel } from "../host/kernel.ts";
import { reused } from "../http/reused.ts";
import type { Log } from "../log/log.ts";
import type { ReadServiceConnections, ServiceConnections } from "../metrics/service-metrics.ts";
import { groupCalled } from "./called.ts";
import { ConnectionCounts } from "./counts.ts";
import { endpointOf, relayedEndpoints } from "./relayed.ts";

export interface ConnectionReaderParts {
  readonly settings: ServiceMetricsSettings;
  readonly planner: Pick<Planner, "lookup" | "plan">;
  readonly tracking: Kernel["tracking"];
  /** Where this process itself carries the traffic. */
  readonly relays?: Pick<RelayTraffic, "connections"> | undefined;
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Pick<Log, "warn">;
}

/** Milliseconds for which a reading is given again: it costs as much as there are connections. */
const FRESH_MS = 5_000;

/**
 * Reads the connections that services have through this node from connection tracking on request; a caller that asks
 * meanwhile waits for the same reading. Nothing is done and next to nothing held without a request.
 */
export function connectionReader(parts: ConnectionReaderParts): ReadServiceConnections {
  const { settings, clock, log } = parts;
  let [failing, bounded] = [false, false];
  return reused(clock, FRESH_MS, async () => {
    try {
      const read = await readConnections(parts);
      failing = false;
      if (read.leftOut > 0 && !bounded) {
        bounded = true;
        const fields = { leftOut: read.leftOut, maxSeries: settings.maxSeries };
        log.warn(
          "Too many services for connection metrics; further services get none, traffic is not affected",
          fields,
        );
      }
      return read;
    } catch (error) {
      const said = failing;
      failing = true;
      if (!said) {
        log.warn("Cannot read conntrack; service connection metrics disabled", {
          error: errorChainText(error),
        });
      }
      return undefined;
    }
  });
}

async function readConnections({
  settings,
  planner,
  tracking,
  relays,
}: ConnectionReaderParts): Promise<ServiceConnections> {
  const yielding = slices();
  const wanted = wantedServices(settings);
  const answers = relays === undefined ? endpointOf : await relayedEndpoints(relays, yielding);
  const counts = new ConnectionCounts();
  for await (const connection of (await tracking()).list()) {
    const group = groupCalled(planner, connection);
    const endpoint = group && wanted(group.service) ? answers(connection) : undefined;
    if (group !== undefined && endpoint !== undefined) counts.add(group, endpoint);
    await yielding();
  }
  return counts.within(settings.maxSeries);
}

function wantedServices({ namespaces }: ServiceMetricsSettings): (service: ServiceKey) => boolean {
  if (namespaces === "all") return () => true;
  const wanted = new Set(namespaces);
  return (service) => wanted.has(splitKey(service).namespace);
}
