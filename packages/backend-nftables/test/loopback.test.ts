import { FakeNftables } from "@fairlead/kernel/fake";
import { type NftTable, tableLines } from "@fairlead/netfilter/nft";
import { noChange, slotHistory, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createNftablesBackend, type LoopbackNodePorts, planTable } from "../src/index.ts";
import { openWorld } from "./support/world.ts";

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
