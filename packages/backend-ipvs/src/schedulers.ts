import type { ServicePortGroup } from "@fairlead/core";
import type { Settled } from "./options.ts";
import { askedScheduler, SCHEDULER_ANNOTATION, type Scheduler, schedulerProblem } from "./plan/schedulers.ts";

/**
 * Which of the schedulers that services ask for this kernel has; told once where it has not, or where one is no
 * scheduler.
 */
export class Schedulers {
  readonly #settled: Settled;
  readonly #loaded = new Map<Scheduler, boolean>();
  readonly #told = new Set<string>();

  constructor(settled: Settled) {
    this.#settled = settled;
  }

  /** Those that services can't have. */
  get lacking(): ReadonlySet<Scheduler> {
    return new Set([...this.#loaded].filter(([, loaded]) => !loaded).map(([scheduler]) => scheduler));
  }

  /** Loads what the groups ask for. */
  async look(groups: Iterable<ServicePortGroup | undefined>): Promise<void> {
    for (const group of groups) {
      if (group === undefined || group.annotations[SCHEDULER_ANNOTATION] === undefined) continue;
      const problem = schedulerProblem(group);
      if (problem !== undefined) this.#tell(problem);
      const asked = askedScheduler(group);
      if (asked !== undefined && asked !== this.#settled.scheduler && !this.#loaded.has(asked)) await this.#load(asked);
    }
  }

  /** Asks again for what was not there. */
  forgetLacking(): void {
    for (const scheduler of this.lacking) this.#loaded.delete(scheduler);
  }

  async #load(scheduler: Scheduler): Promise<void> {
    const loaded = await this.#settled.loadScheduler(scheduler);
    this.#loaded.set(scheduler, loaded);
    if (loaded) return;
    const { scheduler: standard } = this.#settled;
    this.#tell(
      `the kernel has no IPVS scheduler ${scheduler} (modprobe ip_vs_${scheduler}): services that ask for it get ${standard}`,
    );
  }

  #tell(problem: string): void {
    if (this.#told.has(problem)) return;
    this.#told.add(problem);
    this.#settled.onProblem(problem);
  }
}
