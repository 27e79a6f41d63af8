import { type Clock, nextTurn, systemClock } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { openRelay } from "./relay/open.ts";
import type { OpenRelay, RelayRequest } from "./relay/relay.ts";
import { createTraffic, type RelayTraffic } from "./relay/traffic.ts";

/** Ports that relays may listen on, both ends included. */
export interface PortRange {
  /** The lowest port, from 1. */
  readonly from: number;
  /** The highest port, up to 65535. */
  readonly to: number;
}

/** What may be chosen when the backend is made. */
export interface UserspaceOptions {
  /** The address to listen on (bindAddress). Default: one of the node's own, as the plan names them. */
  readonly address?: string;
  /** Default: any port that is free. */
  readonly portRange?: PortRange;
  /** Milliseconds after which a UDP flow without a packet is forgotten. Default 250, as kube-proxy had it. */
  readonly udpIdleTimeout?: number;
  /**
   * Milliseconds after which a TCP connection without a byte is ended; 0: never. Default 24 hours, as conntrack has it.
   */
  readonly tcpIdleTimeout?: number;
  /** Sockets that one service port may have open, two for each TCP connection. Default 16,000. */
  readonly maxSocketsPerService?: number;
  /**
   * What is counted and bounded over all relays; families that share a process share it. Default: one for this backend
   * only.
   */
  readonly traffic?: RelayTraffic;
  /** Node ports are served on 127.0.0.0/8, too (iptables.localhostNodePorts). Default true. */
  readonly localhostNodePorts?: boolean;
  /** Default the system's clock. */
  readonly clock?: Pick<Clock, "monotonic" | "after">;
  /** Gives the event loop its turn between pieces of work. Default `nextTurn`. */
  readonly turn?: () => Promise<void>;
  /** Called with what does not stop the sync but an operator should know: services that cannot be relayed, and why. */
  readonly onProblem?: (problem: string) => void;
  /** Opens a relay's listening socket. Default: a real one. */
  readonly open?: (request: RelayRequest) => Promise<OpenRelay>;
}

/** The options with every default filled in. */
export type ResolvedOptions = Required<Omit<UserspaceOptions, "address" | "portRange">> &
  Pick<UserspaceOptions, "address" | "portRange"> & { readonly family: IPFamily };

const DEFAULTS = {
  udpIdleTimeout: 250,
  tcpIdleTimeout: 24 * 3_600_000,
  maxSocketsPerService: 16_000,
  localhostNodePorts: true,
  clock: systemClock,
  turn: nextTurn,
  onProblem: () => {},
  open: openRelay,
} as const satisfies Partial<ResolvedOptions>;

/** @throws RangeError when a timeout, limit or port range is out of range */
export function resolveOptions(family: IPFamily, options: UserspaceOptions): ResolvedOptions {
  const resolved: ResolvedOptions = { ...DEFAULTS, traffic: createTraffic(), ...options, family };
  demand("udpIdleTimeout", resolved.udpIdleTimeout, resolved.udpIdleTimeout > 0, "more than 0 milliseconds");
  demand("tcpIdleTimeout", resolved.tcpIdleTimeout, resolved.tcpIdleTimeout >= 0, "0 or more milliseconds");
  demand("maxSocketsPerService", resolved.maxSocketsPerService, resolved.maxSocketsPerService >= 2, "2 or more");
  const { portRange } = resolved;
  if (portRange !== undefined) {
    const { from, to } = portRange;
    demand("portRange", `${from}-${to}`, from >= 1 && from <= to && to <= 65_535, "ports from 1 to 65535");
  }
  return resolved;
}

function demand(name: string, value: string | number, good: boolean, right: string): void {
  if (!good) throw new RangeError(`${name} is ${value}; it must be ${right}`);
}
