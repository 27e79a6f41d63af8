import type { ServicePortGroup } from "@fairlead/core";
import type { ResolvedOptions } from "./options.ts";
import { askedScheduler, type Scheduler, schedulerProblem } from "./plan/schedulers.ts";

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

  /** Those that services can't have. */
  get lacking(): ReadonlySet<Scheduler> {
    return new Set([...this.#loaded].filter(([, loaded]) => !loaded).map(([scheduler]) => scheduler));
  }

  /** Loads what the groups ask for. */
  async loadAll(groups: Iterable<ServicePortGroup | undefined>): Promise<void> {
    for (const group of groups) {
      if (group === undefined) continue;
      const problem = schedulerProblem(group);
      if (problem !== undefined) this.#report(problem);
      const asked = askedScheduler(group)?.scheduler;
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
