import { type Clock, nextTurn, systemClock } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { IptablesSettings } from "./plan/settings.ts";

/** What a configuration and the node decide; `configuredOptions` makes it. */
interface ConfiguredOptions {
  /** Bit of the packet mark that asks for masquerading, 0…31. Default 14. */
  readonly masqueradeBit: number;
  /** Node ports on 127.0.0.1, IPv4 only; needs the sysctls of `requiredSysctls`. Default true. */
  readonly localhostNodePorts: boolean;
  /** The node has net.netfilter.nf_conntrack_tcp_be_liberal set. Default false. */
  readonly tcpBeLiberal: boolean;
  /** Milliseconds between two deletions of stale chains in a large cluster. Default 30,000. */
  readonly syncPeriod: number;
}

/** What may be chosen when the backend is made; all of it has kube-proxy's default. */
export interface IptablesOptions extends Partial<ConfiguredOptions> {
  /**
   * Makes the nfacct objects that rules are to count with, before each full sync, and returns those that exist. The
   * match is left out for the others. Default: none exists.
   */
  readonly counters?: (names: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Default: the system's. */
  readonly clock?: Pick<Clock, "monotonic">;
  /** Gives the event loop its turn, every few milliseconds of rendering. Default `nextTurn`. */
  readonly turn?: () => Promise<void>;
  /** Called with what does not stop the sync but an operator should know. */
  readonly onProblem?: (problem: string) => void;
}

/** The options with every default filled in. */
export interface ResolvedOptions extends IptablesSettings {
  readonly counters: (names: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly syncPeriod: number;
  readonly clock: Pick<Clock, "monotonic">;
  readonly turn: () => Promise<void>;
  readonly onProblem: (problem: string) => void;
}

const DEFAULTS = {
  masqueradeBit: 14,
  localhostNodePorts: true,
  tcpBeLiberal: false,
  counters: async () => new Set<string>(),
  syncPeriod: 30_000,
  clock: systemClock,
  turn: nextTurn,
  onProblem: () => {},
} as const satisfies Omit<ResolvedOptions, "family">;

/** The part of an agent's configuration (`AgentConfig` of @fairlead/config) that this mode reads. */
interface Configuration {
  readonly iptables: {
    readonly masqueradeBit: number;
    readonly localhostNodePorts: boolean;
    readonly syncPeriodMs: number;
  };
}

/**
 * The options for a configuration: the same in the agent, which writes the rules, and in the tools, which expect them.
 *
 * @param node the node's own setting counts
 */
export function configuredOptions(
  { iptables: { masqueradeBit, localhostNodePorts, syncPeriodMs } }: Configuration,
  node: { readonly tcpBeLiberal: boolean },
): ConfiguredOptions {
  return { masqueradeBit, localhostNodePorts, syncPeriod: syncPeriodMs, tcpBeLiberal: node.tcpBeLiberal };
}

/** @throws RangeError when masqueradeBit is no bit of a mark */
export function resolveOptions(family: IPFamily, options: IptablesOptions): ResolvedOptions {
  const resolved: ResolvedOptions = { ...DEFAULTS, ...options, family };
  const bit = resolved.masqueradeBit;
  if (!Number.isInteger(bit) || bit < 0 || bit > 31) {
    throw new RangeError(`masqueradeBit is ${bit}; it must be a whole number from 0 to 31`);
  }
  return resolved;
}
