import type { ClusterView } from "../cluster-state.ts";
import { equal } from "../data.ts";
import type { OwnershipDecision, OwnershipMemory } from "../filter.ts";
import type { IPFamily, ServiceKey } from "../objects.ts";
import type { ForwardingPlan, PlanChange } from "../plan.ts";
import { FamilyPlanner } from "./family-planner.ts";
import type { FrontendLookup } from "./frontends.ts";
import { excludedClients, nodePlan, type PlannerOptions, replansServices } from "./options.ts";
import { type PlanCounts, type PlanStep, type ServiceOwnership, StepCollector } from "./step.ts";

/**
 * Turns objects into forwarding plans. A plan is a function of objects, memory and options: whatever the order in which
 * changes came, the plan is that of a fresh start. The cost of a step follows the services that it plans.
 */
export class Planner {
  readonly #families: Readonly<Record<IPFamily, FamilyPlanner>>;
  #options: PlannerOptions;
  /** Everything has to be planned with the next step, since the options changed. */
  #planAll = false;
  /** What a new filter may decide differently, or other addresses of the node, since the last step. */
  readonly #concerned = new Set<ServiceKey>();
  #running = false;

  constructor(options: PlannerOptions) {
    this.#options = options;
    this.#families = { IPv4: new FamilyPlanner("IPv4", options), IPv6: new FamilyPlanner("IPv6", options) };
  }

  /**
   * Plans from now on for other options. They take effect with the next `replan`, which knows by itself what they make
   * dirty: `nothing`, `node` (the node's part of the plans only), `concerned` (with the node's part) or `all`.
   *
   * @param concerned the only services of which a new filter may decide differently; absent: all
   */
  setOptions(options: PlannerOptions, concerned?: Iterable<ServiceKey>): "nothing" | "node" | "concerned" | "all" {
    const before = this.#options;
    this.#options = options;
    const sameFilter = before.filter === options.filter;
    if (replansServices(before, options) || !(sameFilter || concerned !== undefined)) {
      this.#planAll = true;
      return "all";
    }
    const chosenMoved = this.#concernChoosing(before, options);
    if (!sameFilter) {
      for (const key of concerned ?? []) this.#concerned.add(key);
      for (const planner of this.#each()) {
        const { family } = planner;
        if (equal(excludedClients(before, family), excludedClients(options, family))) continue;
        for (const key of planner.dividedServices()) this.#concerned.add(key);
      }
      return "concerned";
    }
    if (chosenMoved) return "concerned";
    const nodeChanged = this.#each().some(({ family }) => !equal(nodePlan(before, family), nodePlan(options, family)));
    return nodeChanged ? "node" : "nothing";
  }

  /** Plans the services again that choose among the node's addresses; gives whether there are any. */
  #concernChoosing(before: PlannerOptions, after: PlannerOptions): boolean {
    const moved = this.#each().filter(
      ({ family }) => !equal(before.nodePortHosts?.[family], after.nodePortHosts?.[family]),
    );
    const choosing = moved.flatMap((planner) => [...planner.choosingServices()]);
    for (const key of choosing) this.#concerned.add(key);
    return choosing.length > 0;
  }

  /** The live plan of a family; empty for a family that is not planned. */
  plan(family: IPFamily): ForwardingPlan {
    return this.#families[family].plan;
  }

  /**
   * Plans the dirty services again. Yields after each of them, and of the groups that they changed, and within those of
   * thousands of endpoints, so that the caller can do other things between; until it has run to its end the live plans
   * are between two states. A step that is given up makes the next one plan everything.
   *
   * @param state may change between two slices; what does is dirty for the next step
   * @param memory must not change before the end
   * @throws Error when another step has begun and not ended
   */
  *replan(
    state: ClusterView,
    dirty: Iterable<ServiceKey> | "all",
    memory: OwnershipMemory,
  ): Generator<void, PlanStep, void> {
    if (this.#running) throw new Error("a planning step has begun and not ended");
    this.#running = true;
    let finished = false;
    try {
      const input = { state, memory, options: this.#options, step: new StepCollector() };
      const queue = new Set(dirty === "all" || this.#planAll ? this.#everything(state, memory) : dirty);
      for (const key of this.#concerned) queue.add(key);
      this.#concerned.clear();
      this.#planAll = false;
      for (const key of queue) {
        queue.delete(key);
        for (const planner of this.#each()) {
          for (const other of yield* planner.replan(key, input)) queue.add(other);
        }
        yield;
      }
      const changes = yield* this.#changes(input.options);
      for (const { plan } of this.#each()) plan.changes.forget();
      finished = true;
      return input.step.finish(changes);
    } finally {
      this.#running = false;
      if (!finished) this.#planAll = true;
    }
  }

  /** Finds the group behind a frontend; a live view as the plan is. */
  lookup(family: IPFamily): FrontendLookup {
    return this.#families[family];
  }

  /** How many services, groups and endpoints the plan of a family has. */
  counts(family: IPFamily): PlanCounts {
    return this.#families[family].counts;
  }

  /** Undefined: there is no such service in that family. */
  ownership(service: ServiceKey, family: IPFamily): OwnershipDecision | undefined {
    return this.#families[family].decision(service);
  }

  /** All decisions that hold, family by family. */
  *ownerships(): Generator<ServiceOwnership, void, void> {
    for (const planner of this.#each()) {
      for (const service of planner.keys()) {
        const decision = planner.decision(service);
        if (decision !== undefined) yield { service, family: planner.family, decision };
      }
    }
  }

  #each(): readonly FamilyPlanner[] {
    return [this.#families.IPv4, this.#families.IPv6];
  }

  *#everything(state: ClusterView, memory: OwnershipMemory): Generator<ServiceKey, void, void> {
    yield* state.keys();
    for (const planner of this.#each()) yield* planner.keys();
    yield* memory.services?.() ?? [];
  }

  *#changes(options: PlannerOptions): Generator<void, ReadonlyMap<IPFamily, PlanChange>> {
    const changes = new Map<IPFamily, PlanChange>();
    for (const { family, plan } of this.#each()) {
      plan.setNode(nodePlan(options, family));
      const change = yield* plan.changes.change();
      if (change !== undefined) changes.set(family, change);
    }
    return changes;
  }
}
