import type { Ownership, OwnershipDecision } from "../filter.ts";
import type { IPFamily, ServiceKey } from "../objects.ts";
import type { PlanChange } from "../plan.ts";
import type { Problem } from "../problem.ts";
import type { Conflict } from "./problems.ts";
import type { MemoryUpdate, OwnershipChange, PlanStep, ReleasedGroup } from "./step.ts";

/**
 * Gathers what a planning step comes to, alongside the plan's own change. A service planned twice in a step counts
 * once.
 */
export class StepCollector {
  readonly #memory = new Map<string, MemoryUpdate>();
  readonly #ownership = new Map<string, OwnershipChange>();
  readonly #released = new Map<string, ReleasedGroup>();
  readonly #problems: Problem[] = [];
  readonly #conflicts = new Map<string, Conflict["problem"]>();

  remember(service: ServiceKey, family: IPFamily, remembered: Ownership | undefined, now: OwnershipDecision): void {
    if (!now.decided || now.ownership === remembered) return;
    this.#memory.set(`${family} ${service}`, { service, family, ownership: now.ownership });
  }

  forget(service: ServiceKey, family: IPFamily, remembered: Ownership | undefined): void {
    if (remembered !== undefined) this.#memory.set(`${family} ${service}`, { service, family });
  }

  changeOwner(service: ServiceKey, family: IPFamily, from: Ownership | undefined, now: OwnershipDecision): void {
    const to = now.ownership;
    if (from === undefined || from === to) return;
    const { why, decidedBy } = now;
    const change = { service, family, from, to, why, ...(decidedBy && { decidedBy }) };
    this.#ownership.set(`${family} ${service}`, change);
  }

  release(groups: readonly ReleasedGroup[]): void {
    for (const group of groups) this.#released.set(`${group.family} ${group.id}`, group);
  }

  /** Who holds a frontend in the end is known when the step is over: till then it may go from one to the next. */
  lose(service: ServiceKey, family: IPFamily, conflicts: readonly Conflict[]): void {
    for (const { claim, problem } of conflicts) this.#conflicts.set(`${family} ${service} ${claim}`, problem);
  }

  report(problems: readonly Problem[]): void {
    for (const problem of problems) this.#problems.push(problem);
  }

  finish(changes: ReadonlyMap<IPFamily, PlanChange>): PlanStep {
    return {
      changes,
      memory: [...this.#memory.values()],
      ownershipChanges: [...this.#ownership.values()],
      released: [...this.#released.values()],
      problems: [...this.#problems, ...[...this.#conflicts.values()].flatMap((problem) => problem() ?? [])],
    };
  }
}
