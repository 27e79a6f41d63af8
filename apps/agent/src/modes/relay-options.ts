import { createTraffic, type UserspaceOptions } from "@fairlead/backend-userspace";
import type { AgentConfig } from "@fairlead/config";
import { descriptorLimit, descriptorShares } from "../host/descriptors.ts";
import type { Log } from "../log/log.ts";

/** What all relays of this process have in common, of both families. */
export function relayOptions({ userspace, provenance }: Pick<AgentConfig, "userspace" | "provenance">, log: Log) {
  const { relayed } = descriptorShares(descriptorLimit());
  const maxSockets = Math.min(userspace.maxSockets, relayed);
  if (maxSockets < userspace.maxSockets && provenance["userspace.maxSockets"] !== undefined) {
    const fields = { maxSockets: userspace.maxSockets, used: maxSockets };
    log.warn("userspace.maxSockets exceeds what RLIMIT_NOFILE leaves for relays; using the lower limit", fields);
  }
  return {
    udpIdleTimeout: userspace.udpIdleTimeoutMs,
    tcpIdleTimeout: userspace.tcpIdleTimeoutMs,
    maxSocketsPerService: userspace.maxSocketsPerService,
    traffic: createTraffic({ maxSockets }),
  } as const satisfies UserspaceOptions;
}
