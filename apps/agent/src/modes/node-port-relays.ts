/** Relays of node ports on loopback addresses, and what all relays have in common. */

import {
  createNodePortRelays,
  createTraffic,
  type NodePortRelays,
  type UserspaceOptions,
} from "@fairlead/backend-userspace";
import type { AgentConfig } from "@fairlead/config";
import type { Backend, IPFamily } from "@fairlead/core";
import { relayLimits } from "../descriptors.ts";
import type { Log } from "../log.ts";
import type { Relaying } from "./mode.ts";

interface LoopbackRelays {
  readonly families: ReadonlyMap<IPFamily, NodePortRelays>;
  /** Absent: no family has them. */
  readonly relaying: Relaying | undefined;
}

/** For a mode that leads packets by DNAT, which is no way out of a loopback address (KEP-6032). Opens nothing yet. */
export function loopbackRelays(
  config: AgentConfig,
  families: readonly IPFamily[],
  log: Log,
  system: Pick<UserspaceOptions, "clock" | "open"> = {},
): LoopbackRelays {
  const served = families.filter((family) => config.nftables.loopbackNodePorts[family] === "relayed");
  if (served.length === 0) return { families: new Map(), relaying: undefined };
  const options = relayOptions(config, log);
  const made = new Map(
    served.map((family) => {
      const onProblem = (problem: string) =>
        log.warn("Cannot listen for a node port on the loopback address; other addresses serve it, retrying", {
          ipFamily: family,
          problem,
        });
      return [family, createNodePortRelays(family, { ...options, ...system, onProblem })] as const;
    }),
  );
  return { families: made, relaying: relayingOf(made, options.traffic) };
}

/** The backend with relays that follow it: after the kernel has its rules, so that no relay holds these up. */
export function withRelays(backend: Backend, relays: NodePortRelays | undefined): Backend {
  if (relays === undefined) return backend;
  return {
    semantics: backend.semantics,
    async sync(plan) {
      const report = await backend.sync(plan);
      await relays.sync(plan);
      return report;
    },
    async apply(plan, change) {
      const report = await backend.apply(plan, change);
      await relays.apply(change);
      return report;
    },
    difference: (plan) => backend.difference(plan),
    async maintain() {
      const waits = [await backend.maintain?.(), await relays.retry()].filter((wait) => wait !== undefined);
      return waits.length === 0 ? undefined : Math.min(...waits);
    },
    async cleanup() {
      relays.close();
      await backend.cleanup();
    },
  };
}

/** What all relays of this process have in common, of both families. */
export function relayOptions({ userspace, provenance }: Pick<AgentConfig, "userspace" | "provenance">, log: Log) {
  const { maxSockets, maxSocketsPerService } = relayLimits(userspace);
  if (maxSockets < userspace.maxSockets && provenance["userspace.maxSockets"] !== undefined) {
    const fields = { maxSockets: userspace.maxSockets, used: maxSockets };
    log.warn("userspace.maxSockets exceeds what RLIMIT_NOFILE leaves for relays; using the lower limit", fields);
  }
  return {
    udpIdleTimeout: userspace.udpIdleTimeoutMs,
    tcpIdleTimeout: userspace.tcpIdleTimeoutMs,
    maxSocketsPerService,
    traffic: createTraffic({ maxSockets }),
  } as const satisfies UserspaceOptions;
}

function relayingOf(families: LoopbackRelays["families"], traffic: Relaying["traffic"]): Relaying {
  return {
    traffic,
    async close(drained) {
      for (const relays of families.values()) relays.close();
      await traffic.end(drained);
    },
  };
}
