import { createIptablesBackend } from "@fairlead/backend-iptables";
import { planTable } from "@fairlead/backend-nftables";
import { toEnd } from "@fairlead/base";
import { FakeIptables } from "@fairlead/kernel/fake";
import { goldenNode, goldenPlannerOptions } from "@fairlead/testkit";
import { type SlotChanges, slotChanges, World, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { KernelState } from "../../../src/index.ts";
import { factsOf, groupDifferences, straysIn } from "../../../src/index.ts";
import { checkedView } from "./support/checked-view.ts";

const NODE = goldenNode(false);
const [NODE_ADDRESS = ""] = NODE.addresses;
const environment = { localAddresses: [NODE_ADDRESS] };
const slots = slotChanges([1, 2, 3, 4, 5, 6], 6);

function differences({ plan }: World, state: KernelState): unknown[] {
  const view = checkedView(state);
  const found = [...plan.groups.values()].flatMap((group) => groupDifferences(group, plan.node, view, NODE_ADDRESS));
  return [...found, ...toEnd(straysIn(plan, state))];
}

/** What differs of services that are programmed as Fairlead does; the recordings hold that to what kube-proxy does. */
async function inIptables(changes: SlotChanges): Promise<unknown[]> {
  const world = new World(goldenPlannerOptions(NODE, factsOf("iptables").semantics));
  world.change(changes);
  const iptables = new FakeIptables({ family: "IPv4" });
  await createIptablesBackend(iptables, { counters: async () => new Set() }).sync(world.plan);
  return differences(world, { ruleSet: iptables.ruleSet(), environment });
}

function inNftables(changes: SlotChanges): unknown[] {
  const nodePortAddresses = { IPv4: { kind: "list", addresses: [NODE_ADDRESS] } } as const;
  const world = new World(goldenPlannerOptions(NODE, factsOf("nftables").semantics, { nodePortAddresses }));
  world.change(changes);
  return differences(world, { ruleSet: new Map(), nftables: [planTable(world.plan)], environment });
}

test("iptables mode: whatever the services are, what is programmed for them does not differ", async () => {
  await fc.assert(
    fc.asyncProperty(slots, async (changes) => {
      expect(await inIptables(changes)).toEqual([]);
    }),
    { numRuns: runs(20) },
  );
});

test("nftables mode: the same", () => {
  fc.assert(
    fc.property(slots, (changes) => {
      expect(inNftables(changes)).toEqual([]);
    }),
    { numRuns: runs(20) },
  );
});

test("source ranges of a service without endpoints: iptables mode refuses all clients, nftables mode still checks the ranges", async () => {
  const none = webState({ type: "LoadBalancer", protocol: "UDP", ranges: true, endpoints: [] });
  for (const external of ["Cluster", "Local"] as const) {
    expect(await inIptables([[1, { ...none, external }]])).toEqual([]);
    expect(inNftables([[1, { ...none, external }]])).toEqual([]);
  }
});

test("clients that a source range lets in are refused where there is no local endpoint, the others dropped", async () => {
  const elsewhere = webState({
    type: "LoadBalancer",
    external: "Local",
    refuses: true,
    endpoints: ["none", "none", "ready"],
  });
  for (const ranges of [{ ranges: true }, { nodePortRanges: true }]) {
    expect(await inIptables([[1, { ...elsewhere, ...ranges }]])).toEqual([]);
    expect(inNftables([[1, { ...elsewhere, ...ranges }]])).toEqual([]);
  }
});
