import { inSlices, type Slicing } from "@fairlead/base";
import type { ForwardingPlan } from "@fairlead/core";
import type { PlanContext } from "./plan/context.ts";
import type { FrameFacts } from "./plan/frame-facts.ts";
import { groupObjects } from "./plan/group.ts";
import { Ledger } from "./plan/ledger.ts";
import type { WantedServer } from "./plan/servers.ts";

/** All that a plan needs in the kernel. */
export interface Wanted {
  readonly ledger: Ledger;
  readonly servers: ReadonlyMap<string, WantedServer>;
}

/** Works out a whole plan, with turns of the event loop between. */
export function wantedOf(plan: ForwardingPlan, context: PlanContext, slicing: Partial<Slicing>): Promise<Wanted> {
  return inSlices(collect(plan, context), slicing);
}

function* collect(plan: ForwardingPlan, context: PlanContext): Generator<void, Wanted> {
  const ledger = new Ledger();
  const servers = new Map<string, WantedServer>();
  for (const group of plan.groups.values()) {
    const objects = groupObjects(group, context);
    ledger.add(objects);
    for (const wanted of objects.servers) {
      const other = servers.get(wanted.key);
      if (other === undefined || (other.nodePort && !wanted.nodePort)) servers.set(wanted.key, wanted);
    }
    yield;
  }
  return { ledger, servers };
}

export function frameFacts(ledger: Ledger, { family, mark, masqueradeAll, detector }: PlanContext): FrameFacts {
  return { family, mark, masqueradeAll, detector, filled: ledger.filled(), barred: ledger.barred };
}
