import { VirtualClock } from "@fairlead/base/testing";
import type { PlannerOptions } from "@fairlead/core";
import { FakeNftables } from "@fairlead/kernel/fake";
import { goldenNode } from "@fairlead/testkit";
import { type SlotState, World } from "@fairlead/testkit/histories";
import { createNftablesBackend, type NftablesOptions } from "../../src/index.ts";
import { plannerOptions } from "./golden.ts";
import { recorded } from "./recorded.ts";

export type Batches = readonly (readonly (readonly [number, SlotState | undefined])[])[];

export function openWorld(more: Partial<PlannerOptions> = {}): World {
  return new World(plannerOptions(goldenNode(false), more));
}

/** A backend on a fake, after a full sync of nothing. */
export async function openLive(settings: Pick<NftablesOptions, "fastPath" | "devices"> = {}) {
  const clock = new VirtualClock();
  const fake = new FakeNftables({ clock });
  const { port, transactions } = recorded(fake);
  const backend = createNftablesBackend(port, { family: "IPv4", clock, ...settings });
  const world = openWorld();
  await backend.sync(world.plan);
  const table = () => {
    const found = fake.tableNow("ip", "kube-proxy");
    if (found === undefined) throw new Error("there is no table kube-proxy");
    return found;
  };
  return { clock, fake, backend, world, table, transactions };
}
