import { VirtualClock } from "@fairlead/base/testing";
import type { ForwardingPlan } from "@fairlead/core";
import { goldenNode, goldenPlannerOptions } from "@fairlead/testkit";
import { type CrowdNode, crowdHistory, followCrowd } from "@fairlead/testkit/crowds";
import fc from "fast-check";
import { test } from "vitest";
import { userspaceSemantics } from "../src/index.ts";
import { Balancer, endpointKey } from "../src/relay/balancer.ts";
import { serveSets } from "./support/serve-sets.ts";

test("200 clients, whatever happens to their service: each keeps its endpoint while it is usable", async () => {
  await fc.assert(
    fc.asyncProperty(crowdHistory(), async (history) => {
      await followCrowd(history, userspaceCrowd());
    }),
    { numRuns: 50, endOnFailure: true },
  );
});

/** The balancers of service ports, by their ids, as the relays have them. */
function userspaceCrowd(): CrowdNode {
  const clock = new VirtualClock();
  const balancers = new Map<string, Balancer>();
  const serve = async ({ groups }: ForwardingPlan) => {
    for (const id of balancers.keys()) if (!groups.has(id)) balancers.delete(id);
    for (const [id, group] of groups) {
      const balancer = balancers.get(id) ?? new Balancer(() => clock.monotonic());
      balancers.set(id, balancer);
      serveSets(balancer, group);
    }
  };
  return {
    options: goldenPlannerOptions(goldenNode(false), userspaceSemantics),
    clock,
    nodeAddress: "",
    sharesFrontends: true,
    forgetsRenamed: true,
    forgetsAtRestart: true,
    apply: serve,
    fullSync: serve,
    restart: (plan) => {
      balancers.clear();
      return serve(plan);
    },
    connect: (client) => {
      const [balancer] = balancers.values();
      return endpointKey(balancer?.choose("cluster", client, new Set())) || "reject";
    },
  };
}
