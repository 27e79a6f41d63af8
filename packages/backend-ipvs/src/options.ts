/** Options of this mode, and which schedulers there are. */

import { type Clock, nextTurn, systemClock } from "@fairlead/base";
import type { IPFamily, ServicePortGroup } from "@fairlead/core";
import {
  askedScheduler,
  type IpvsSettings,
  isScheduler,
  SCHEDULERS,
  type Scheduler,
  schedulerProblem,
} from "./plan/context.ts";

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
  /** Called with what does not stop the sync but an operator should know. */
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

const DEFAULTS = {
  masqueradeBit: 14,
  excludeCIDRs: [],
  loadScheduler: async () => true,
  clock: systemClock,
  turn: nextTurn,
  onProblem: () => {},
} as const satisfies Omit<ResolvedOptions, "family" | "scheduler">;

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

/**
 * Which of the schedulers that services ask for this kernel has; reported once where it has not, or where one is no
 * scheduler.
 */
export class Schedulers {
  readonly #options: ResolvedOptions;
  readonly #loaded = new Map<Scheduler, boolean>();
  readonly #reported = new Set<string>();

  constructor(options: ResolvedOptions) {
    this.#options = options;
  }

  get lacking(): ReadonlySet<Scheduler> {
    return new Set([...this.#loaded].filter(([, loaded]) => !loaded).map(([scheduler]) => scheduler));
  }

  /** Loads what the groups ask for. */
  async loadAll(groups: Iterable<ServicePortGroup | undefined>): Promise<void> {
    for (const group of groups) {
      if (group === undefined) continue;
      const problem = schedulerProblem(group);
      if (problem !== undefined) this.#report(problem);
      const asked = askedScheduler(group, this.#options.scheduler)?.scheduler;
      if (asked !== undefined && asked !== this.#options.scheduler && !this.#loaded.has(asked)) await this.#load(asked);
    }
  }

  /** Asks again for what was not there. */
  forgetLacking(): void {
    for (const scheduler of this.lacking) this.#loaded.delete(scheduler);
  }

  async #load(scheduler: Scheduler): Promise<void> {
    const loaded = await this.#options.loadScheduler(scheduler);
    this.#loaded.set(scheduler, loaded);
    if (loaded) return;
    const { scheduler: standard } = this.#options;
    this.#report(
      `the kernel has no IPVS scheduler ${scheduler} (modprobe ip_vs_${scheduler}): services that request it use ${standard}`,
    );
  }

  #report(problem: string): void {
    if (this.#reported.has(problem)) return;
    this.#reported.add(problem);
    this.#options.onProblem(problem);
  }
}
