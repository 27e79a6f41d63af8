import { type Clock, nextTurn, systemClock } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { IpvsSettings } from "./plan/context.ts";
import { isScheduler, SCHEDULERS, type Scheduler } from "./plan/schedulers.ts";

/** What a configuration decides; `configuredOptions` makes it. */
interface ConfiguredOptions {
  /** Bit of the packet mark that asks for masquerading, 0…31. Default 14. */
  readonly masqueradeBit: number;
  /** The scheduler of services that ask for none themselves, one of `SCHEDULERS`. Default rr. */
  readonly scheduler: string;
  /**
   * CIDRs in which virtual servers that this process did not make are never deleted (ipvs.excludeCIDRs). Default: none.
   */
  readonly excludeCIDRs: readonly string[];
}

/** What may be chosen when the backend is made; all of it has kube-proxy's default. */
export interface IpvsOptions extends Partial<ConfiguredOptions> {
  /**
   * Loads the kernel's scheduler before a service uses it that asks for another than the default; false: the kernel has
   * not got it, and the service gets the default. Default: the kernel is taken to have them all.
   */
  readonly loadScheduler?: (scheduler: Scheduler) => Promise<boolean>;
  /** Default: the system's. */
  readonly clock?: Pick<Clock, "monotonic">;
  /** Gives the event loop its turn, every few milliseconds of rendering. Default `nextTurn`. */
  readonly turn?: () => Promise<void>;
  /** Told of what does not stop the sync but an operator should know. */
  readonly onProblem?: (problem: string) => void;
}

/** The options with every default filled in. */
export interface ResolvedOptions extends IpvsSettings {
  readonly excludeCIDRs: readonly string[];
  readonly loadScheduler: (scheduler: Scheduler) => Promise<boolean>;
  readonly clock: Pick<Clock, "monotonic">;
  readonly turn: () => Promise<void>;
  readonly onProblem: (problem: string) => void;
}

const DEFAULTS = {
  masqueradeBit: 14,
  excludeCIDRs: [],
  loadScheduler: async () => true,
  clock: systemClock,
  turn: nextTurn,
  onProblem: () => {},
} as const satisfies Omit<ResolvedOptions, "family" | "scheduler">;

/** The part of an agent's configuration (`AgentConfig` of @fairlead/config) that this mode reads. */
interface Configuration {
  readonly ipvs: ConfiguredOptions;
}

/** The options for a configuration: the same in the agent, which programs the node, and in the tools. */
export function configuredOptions({
  ipvs: { masqueradeBit, scheduler, excludeCIDRs },
}: Configuration): ConfiguredOptions {
  return { masqueradeBit, scheduler, excludeCIDRs };
}

/** @throws RangeError when masqueradeBit is no bit of a mark, or the scheduler none of `SCHEDULERS` */
export function resolveOptions(family: IPFamily, options: IpvsOptions): ResolvedOptions {
  const { scheduler = "rr" } = options;
  if (!isScheduler(scheduler)) {
    throw new RangeError(`ipvs.scheduler is ${JSON.stringify(scheduler)}; it must be one of ${SCHEDULERS.join(", ")}`);
  }
  const resolved: ResolvedOptions = { ...DEFAULTS, ...options, scheduler, family };
  const bit = resolved.masqueradeBit;
  if (!Number.isInteger(bit) || bit < 0 || bit > 31) {
    throw new RangeError(`masqueradeBit is ${bit}; it must be a whole number from 0 to 31`);
  }
  return resolved;
}
