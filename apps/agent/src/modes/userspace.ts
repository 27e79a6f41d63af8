import {
  createLocalBackend,
  createTraffic,
  createUserspaceBackend,
  type LocalBackend,
  type RelayingBackend,
  type RelayTraffic,
  type RulesPort,
  relayLookup,
  type UserspaceOptions,
} from "@fairlead/backend-userspace";
import { familyOf, ipFamilies } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { FrontendLookup, IPFamily } from "@fairlead/core";
import { descriptorLimit, descriptorShares } from "../host/descriptors.ts";
import type { Log } from "../log/log.ts";
import type { Progress } from "../sync/progress.ts";

export { userspaceSemantics } from "@fairlead/backend-userspace";

/** What there is to look after where this process itself carries the traffic. */
export interface Relaying {
  readonly traffic: RelayTraffic;
  /** What connection tracking has for endpoints: the relays. */
  lookup(lookup: FrontendLookup): FrontendLookup;
  /** Lets nobody in any more, and ends what is open until `patience` resolves. */
  close(patience: Promise<void>): Promise<void>;
}

export interface UserspaceBackends<B extends RelayingBackend> {
  readonly backends: ReadonlyMap<IPFamily, B>;
  readonly relaying: Relaying;
}

/** The backends of userspace mode, one a family; limits hold for both together. */
export function userspaceBackends(
  config: AgentConfig,
  ports: ReadonlyMap<IPFamily, RulesPort>,
  log: Log,
  progress: Progress,
): UserspaceBackends<RelayingBackend> {
  const options = sharedOptions(config, log);
  const backends = Array.from(ports, ([family, port]): [IPFamily, RelayingBackend] => [
    family,
    createUserspaceBackend(port, {
      ...options,
      ...familyOptions(family, config, log),
      breathe: progress.breathe(family),
    }),
  ]);
  return relayingBackends(backends, options.traffic);
}

/** Both families on local ports alone (--userspace-only). */
export function localBackends(config: AgentConfig, log: Log): UserspaceBackends<LocalBackend> {
  const options = sharedOptions(config, log);
  const backends = ipFamilies.map((family): [IPFamily, LocalBackend] => [
    family,
    createLocalBackend(family, { ...options, ...familyOptions(family, config, log) }),
  ]);
  return relayingBackends(backends, options.traffic);
}

function sharedOptions({ userspace, portRange, iptables }: AgentConfig, log: Log) {
  const { relayed } = descriptorShares(descriptorLimit());
  const maxSockets = Math.min(userspace.maxSockets, relayed);
  if (maxSockets < userspace.maxSockets) {
    const fields = { maxSockets: userspace.maxSockets, used: maxSockets };
    log.warn("userspace.maxSockets is more than this process may have open (RLIMIT_NOFILE), less its own", fields);
  }
  return {
    udpIdleTimeout: userspace.udpIdleTimeoutMs,
    tcpIdleTimeout: userspace.tcpIdleTimeoutMs,
    maxSocketsPerService: userspace.maxSocketsPerService,
    traffic: createTraffic({ maxSockets }),
    localhostNodePorts: iptables.localhostNodePorts,
    ...(portRange !== undefined && { portRange }),
  } as const satisfies UserspaceOptions;
}

/** bindAddress is for its own family, and only where it names an address. */
function familyOptions(family: IPFamily, { bindAddress }: AgentConfig, log: Log): UserspaceOptions {
  const bound = familyOf(bindAddress) === family && !["0.0.0.0", "::"].includes(bindAddress);
  return {
    ...(bound && { address: bindAddress }),
    onProblem: (problem) => log.warn("userspace", { ipFamily: family, problem }),
  };
}

function relayingBackends<B extends RelayingBackend>(
  entries: readonly (readonly [IPFamily, B])[],
  traffic: RelayTraffic,
): UserspaceBackends<B> {
  const backends = new Map(entries);
  return { backends, relaying: relayingOf(backends, traffic) };
}

/** What there is to look after beside the backends themselves. */
export function relayingOf(backends: ReadonlyMap<IPFamily, RelayingBackend>, traffic: RelayTraffic): Relaying {
  return {
    traffic,
    lookup: (lookup) => relayLookup(lookup, (group) => backends.get(group.family)?.relays(group) ?? []),
    async close(patience) {
      for (const backend of backends.values()) backend.close();
      await traffic.end(patience);
    },
  };
}
