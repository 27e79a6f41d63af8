import type { ForwardingPlan, PlanChange, PlannerOptions } from "@fairlead/core";
import { TestCluster } from "../run/test-cluster.ts";
import { type SlotState, slotObjects } from "./slots.ts";

/** Slots to change at once: what each is to hold; undefined: nothing. */
export type SlotChanges = Iterable<readonly [slot: number, state: SlotState | undefined]>;

/** The change of a plan that stays as it is. */
export const noChange: PlanChange = {
  family: "IPv4",
  groups: new Map(),
  healthChecks: new Map(),
  foreignClusterIPs: { added: [], removed: [] },
};

/** A cluster of slots, and the IPv4 plans of its changes. */
export class World {
  readonly #cluster: TestCluster;
  readonly slots = new Map<number, SlotState>();

  constructor(options: PlannerOptions) {
    this.#cluster = new TestCluster(options);
    this.#cluster.replan();
  }

  get plan(): ForwardingPlan {
    return this.#cluster.plan("IPv4");
  }

  /** Plans for other options; undefined where the plan stays as it is. */
  setOptions(options: PlannerOptions): PlanChange | undefined {
    this.#cluster.setOptions(options);
    return this.#replan();
  }

  /** @returns undefined where the plan stays as it is */
  change(steps: SlotChanges): PlanChange | undefined {
    for (const [slot, state] of steps) this.#set(slot, state);
    return this.#replan();
  }

  #replan(): PlanChange | undefined {
    return this.#cluster.replan().changes.get("IPv4");
  }

  #set(slot: number, state: SlotState | undefined): void {
    const before = this.slots.get(slot);
    if (before !== undefined) {
      const kept = state === undefined ? [] : slotObjects(slot, state).map(({ kind }) => kind);
      this.#cluster.remove(...slotObjects(slot, before).filter(({ kind }) => !kept.includes(kind)));
    }
    if (state === undefined) this.slots.delete(slot);
    else {
      this.#cluster.put(...slotObjects(slot, state));
      this.slots.set(slot, state);
    }
  }
}
