import {
  createLocalBackend,
  createUserspaceBackend,
  type LocalBackend,
  type RelayingBackend,
  type RelayTraffic,
  relayLookup,
  removeUserspaceMode,
  type UserspaceOptions,
  userspaceFacts,
} from "@fairlead/backend-userspace";
import { familyOf, IP_FAMILIES } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { IPFamily, ModeFacts } from "@fairlead/core";
import type { Log } from "../log.ts";
import {
  atOnce,
  type Mode,
  type ModeContext,
  type ModeRuntime,
  openedTables,
  openTables,
  type Relaying,
  watchRules,
} from "./mode.ts";
import { relayOptions } from "./node-port-relays.ts";

export const userspaceMode: Mode = {
  facts: userspaceFacts,
  open: (kernel, family) => openTables(kernel, family, userspaceFacts.needs.iptables),
  serve,
  removeRules: (_, rules, keep) => removeUserspaceMode(rules, keep && { keep }),
};

/** Limits hold for both families together. */
async function serve({ config, families, kernel, log, progress, system }: ModeContext): Promise<ModeRuntime> {
  const ports = await openedTables(kernel, families);
  const options = sharedOptions(config, log);
  const backends = new Map(
    Array.from(ports, ([family, port]): [IPFamily, RelayingBackend] => [
      family,
      createUserspaceBackend(port, {
        ...options,
        ...familyOptions(family, config, log),
        turn: progress.turnOf(family),
        ...system,
      }),
    ]),
  );
  return {
    backends,
    familiesAtOnce: atOnce(userspaceFacts, ports),
    watchForeign: watchRules(ports, userspaceFacts, system?.clock),
    relaying: relayingOf(backends, options.traffic),
  };
}

/** The same mode without rules (--userspace-only). */
export const localFacts: ModeFacts = {
  ...userspaceFacts,
  needs: { ...userspaceFacts.needs, iptables: [] },
  keeps: {},
  objects: { rules: [] },
};

export interface LocalRuntime extends ModeRuntime {
  readonly backends: ReadonlyMap<IPFamily, LocalBackend>;
}

/** Both families on local ports only. */
export function serveLocally(config: AgentConfig, log: Log): LocalRuntime {
  const options = sharedOptions(config, log);
  const backends = new Map(
    IP_FAMILIES.map((family): [IPFamily, LocalBackend] => [
      family,
      createLocalBackend(family, { ...options, ...familyOptions(family, config, log) }),
    ]),
  );
  return { backends, familiesAtOnce: true, relaying: relayingOf(backends, options.traffic) };
}

function sharedOptions(config: AgentConfig, log: Log) {
  const { portRange, userspace } = config;
  return {
    ...relayOptions(config, log),
    localhostNodePorts: userspace.localhostNodePorts,
    ...(portRange !== undefined && { portRange }),
  } as const satisfies UserspaceOptions;
}

/** bindAddress is for its own family, and only where it names an address. */
function familyOptions(family: IPFamily, { bindAddress }: AgentConfig, log: Log): UserspaceOptions {
  const bound = familyOf(bindAddress) === family && !["0.0.0.0", "::"].includes(bindAddress);
  return {
    ...(bound && { address: bindAddress }),
    onProblem: (problem) => log.warn("Problem in userspace mode", { ipFamily: family, problem }),
  };
}

/** What there is to look after alongside the backends themselves. */
function relayingOf(backends: ReadonlyMap<IPFamily, RelayingBackend>, traffic: RelayTraffic): Relaying {
  return {
    traffic,
    lookup: (lookup) => relayLookup(lookup, (group) => backends.get(group.family)?.relays(group) ?? []),
    async close(drained) {
      for (const backend of backends.values()) backend.close();
      await traffic.end(drained);
    },
  };
}
