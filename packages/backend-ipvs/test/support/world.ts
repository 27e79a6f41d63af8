import type { ForwardingPlan, PlanChange, PlannerOptions } from "@fairlead/core";
import { goldenNode } from "@fairlead/testkit";
import { plannerOptions, TestCluster } from "./cluster.ts";
import { type SlotState, slotObjects } from "./slots.ts";

/** A cluster of slots, and the plans of its changes. */
export class World {
  readonly #cluster: TestCluster;
  readonly slots = new Map<number, SlotState>();

  constructor(options: PlannerOptions = worldOptions()) {
    this.#cluster = new TestCluster(options);
    this.#cluster.replan();
  }

  /** Plans for other options; undefined where the plan stays as it is. */
  setOptions(options: PlannerOptions): PlanChange | undefined {
    this.#cluster.setOptions(options);
    return this.#cluster.replan().get("IPv4");
  }

  get plan(): ForwardingPlan {
    return this.#cluster.plan("IPv4");
  }

  /** Changes slots at once; undefined where the plan stays as it is. */
  change(steps: Iterable<readonly [slot: number, state: SlotState | undefined]>): PlanChange | undefined {
    for (const [slot, state] of steps) this.#set(slot, state);
    return this.#cluster.replan().get("IPv4");
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

/** The options of a node with some addresses of its own. */
export function worldOptions(nodeAddresses: readonly string[] = ["10.201.0.10", "127.0.0.1"]): PlannerOptions {
  return plannerOptions(goldenNode(false), { nodeAddresses: { IPv4: nodeAddresses } });
}
