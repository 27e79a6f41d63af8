import type { EndpointFilter } from "@fairlead/core";
import { FakeNftables } from "@fairlead/kernel/fake";
import { type NftTable, tableLines } from "@fairlead/netfilter/nft";
import { goldenNode } from "@fairlead/testkit";
import { dividingFilter, noChange, slotHistory, traceSlots, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createNftablesBackend, type LoopbackNodePorts, planTable } from "../src/index.ts";
import { plannerOptions } from "./support/golden.ts";
import { meaning } from "./support/meaning.ts";
import { openLive, openWorld } from "./support/world.ts";

/** In the last one CIDRs that are no wider one together follow each other. */
const LISTS = [
  ["10.244.0.0/16"],
  ["10.244.0.0/17", "10.245.0.0/16"],
  [],
  ["10.244.128.0/17", "10.245.0.0/16"],
] as const;
const options = (cidrs: readonly string[]) => ({ filter: dividingFilter(cidrs) });

test("whatever the history of services and CIDRs, packets fare as after a fresh start", async () => {
  const list = fc.constantFrom(...LISTS);
  await fc.assert(
    fc.asyncProperty(slotHistory, fc.array(list, { maxLength: 6 }), async (batches, lists) => {
      const { clock, backend, table } = await openLive();
      const world = openWorld(options([]));
      await backend.sync(world.plan);
      for (const [at, batch] of batches.entries()) {
        const cidrs = lists[at];
        for (const change of [
          world.change(batch),
          cidrs && world.setOptions(plannerOptions(goldenNode(false), options(cidrs))),
        ]) {
          if (change !== undefined) expect((await backend.apply(world.plan, change)).kind).toBe("partial");
        }
      }
      for (let times = 0; times < 2; times++) await clock.advance((await backend.maintain()) ?? 0);
      const again = openWorld(options(lists.slice(0, batches.length).at(-1) ?? []));
      again.change(world.slots);
      expect(JSON.stringify(meaning(table()))).toBe(JSON.stringify(meaning(planTable(again.plan))));
    }),
    { numRuns: runs(14) },
  );
});

test("what is left for all clients is left, not dropped, where another address is left for some only", () => {
  const { decide } = dividingFilter([]);
  const leave: EndpointFilter["decide"] = (service, ...more) => {
    const decision = decide(service, ...more);
    return service.name.endsWith("-2") ? { ...decision, ownership: "foreign", frontends: "none" } : decision;
  };
  const outcomes = (filter: EndpointFilter) => {
    const world = openWorld({ filter });
    world.change([
      [1, webState()],
      [2, webState()],
    ]);
    return [...traceSlots({ nftables: [planTable(world.plan)] }, [2])].map(([packet, found]) => [
      packet,
      found.map(({ verdict, destination, masqueraded }) => JSON.stringify([verdict, destination, masqueraded])),
    ]);
  };
  const among = outcomes({ decide: leave, excludedClients: () => ["10.244.0.0/16"] });
  expect(among).toEqual(outcomes({ decide: leave }));
  expect(JSON.stringify(among)).not.toContain("drop");
});

function opened(setting: LoopbackNodePorts, fake = new FakeNftables(), world = openWorld()) {
  const backend = createNftablesBackend(fake, { family: "IPv4", loopbackNodePorts: { IPv4: setting, IPv6: setting } });
  return { backend, fake, world };
}

/** Lines about node ports on loopback addresses, elements sorted. */
function linesOf(table: NftTable | undefined): readonly string[] {
  if (table === undefined) return [];
  const [map] = [table.sets.get("localhost-nodeport-reject-ports")];
  const elements = [...(map?.elements.values() ?? [])]
    .map(({ key, value }) => `${key} ${JSON.stringify(value)}`)
    .sort();
  const lines = [...tableLines({ ...table, sets: new Map() })].filter((line) => line.includes("localhost-nodeport"));
  return [...elements, ...lines];
}

test("whatever the history, what is refused is as after a fresh start", async () => {
  await fc.assert(
    fc.asyncProperty(slotHistory, fc.constantFrom("untouched", "refused", "relayed"), async (history, setting) => {
      const { backend, fake, world } = opened(setting);
      await backend.sync(world.plan);
      for (const batch of history) await backend.apply(world.plan, world.change(batch) ?? noChange);
      const fresh = planTable(world.plan, { loopbackNodePorts: { IPv4: setting, IPv6: setting } });
      expect(linesOf(fake.tableNow("ip", "kube-proxy"))).toEqual(linesOf(fresh));
    }),
    { numRuns: runs(20) },
  );
});

test("a restart with another setting leaves nothing of the one before", async () => {
  const first = opened("refused");
  first.world.change([[1, webState({ type: "NodePort" })]]);
  await first.backend.sync(first.world.plan);
  const refused = linesOf(first.fake.tableNow("ip", "kube-proxy"));
  expect(refused.filter((line) => line.includes("goto") || line.includes("reject-tcp")).length).toBeGreaterThan(0);
  await opened("relayed", first.fake, first.world).backend.sync(first.world.plan);
  expect(linesOf(first.fake.tableNow("ip", "kube-proxy")).join("\n")).not.toContain("tcp");
  await opened("untouched", first.fake, first.world).backend.sync(first.world.plan);
  expect(linesOf(first.fake.tableNow("ip", "kube-proxy"))).toEqual([]);
});
