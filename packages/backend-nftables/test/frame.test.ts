import type { EndpointFilter, ForwardingPlan, ServicePortGroup } from "@fairlead/core";
import { FakeNftables } from "@fairlead/kernel/fake";
import { type NftTable, ruleText, tableLines, tableText, type Verdict } from "@fairlead/netfilter/nft";
import { goldenNode } from "@fairlead/testkit";
import {
  dividingFilter,
  noChange,
  type SlotState,
  slotChanges,
  slotHistory,
  traceSlots,
  webState,
} from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createNftablesBackend, type LoopbackNodePorts, planTable } from "../src/index.ts";
import { meaning } from "./support/tables.ts";
import { openLive, openWorld, plannerOptions } from "./support/world.ts";

/** In the last one CIDRs that are no wider one together follow each other. */
const LISTS = [
  ["10.244.0.0/16"],
  ["10.244.0.0/17", "10.245.0.0/16"],
  [],
  ["10.244.128.0/17", "10.245.0.0/16"],
] as const;
const options = (cidrs: readonly string[], resetStaleTCP = false) => ({ filter: dividingFilter(cidrs), resetStaleTCP });

test("whatever the history of services, CIDRs and resets, packets fare as after a fresh start", async () => {
  const list = fc.constantFrom(...LISTS);
  await fc.assert(
    fc.asyncProperty(slotHistory, fc.array(list, { maxLength: 6 }), fc.boolean(), async (batches, lists, resets) => {
      const { clock, backend, table } = await openLive();
      const world = openWorld(options([], resets));
      await backend.sync(world.plan);
      for (const [at, batch] of batches.entries()) {
        const cidrs = lists[at];
        for (const change of [
          world.change(batch),
          cidrs && world.setOptions(plannerOptions(goldenNode(false), options(cidrs, resets))),
        ]) {
          if (change !== undefined) expect((await backend.apply(world.plan, change)).kind).toBe("partial");
        }
      }
      for (let times = 0; times < 2; times++) await clock.advance((await backend.maintain()) ?? 0);
      const again = openWorld(options(lists.slice(0, batches.length).at(-1) ?? [], resets));
      again.change(world.slots);
      expect(JSON.stringify(meaning(table()))).toBe(JSON.stringify(meaning(planTable(again.plan))));
    }),
    { numRuns: runs(20) },
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

const SLOTS = [1, 2, 3, 4, 5];

function fresh(slots: Iterable<readonly [number, SlotState | undefined]>, resetStaleTCP: boolean): NftTable {
  const world = openWorld({ resetStaleTCP });
  world.change(slots);
  return planTable(world.plan);
}

test("new connections are treated as ever, whether others are reset or not", () => {
  fc.assert(
    fc.property(slotChanges(SLOTS), (steps) => {
      expect(ends(fresh(steps, true))).toEqual(ends(fresh(steps, false)));
    }),
    { numRuns: runs(14) },
  );
});

function ends(table: NftTable) {
  const traced = [...traceSlots({ nftables: [table] }, SLOTS)];
  return traced.map(([packet, outcomes]) => {
    const found = outcomes.map(({ verdict, destination, masqueraded }) =>
      JSON.stringify([verdict, destination, masqueraded]),
    );
    return [packet, [...new Set(found)].sort()];
  });
}

const NO_ENDPOINT = ["none", "none", "none", "none"] as const;
const ELSEWHERE = ["none", "none", "ready", "none"] as const;

/** What becomes of packets to a service that has no endpoint for some clients. */
function refusals(state: Partial<SlotState>, resetStaleTCP = true): readonly (readonly string[])[] {
  const table = fresh([[1, webState(state)]], resetStaleTCP);
  const verdicts = ["no-endpoint-services", "no-endpoint-nodeports"].flatMap((map) =>
    [...(table.sets.get(map)?.elements.values() ?? [])].map(({ value }) => value as Verdict),
  );
  return verdicts.map((verdict) => {
    const rules = "chain" in verdict ? table.chains.get(verdict.chain)?.rules : undefined;
    return rules?.map((rule) => ruleText({ expressions: rule.expressions }, table)) ?? [verdict.kind];
  });
}

const RESET = "meta l4proto tcp tcp flags != syn / fin,syn,rst,ack reject with tcp reset";

test("what is in the middle of a connection is reset before all is refused, or dropped", () => {
  expect(refusals({ type: "NodePort", endpoints: NO_ENDPOINT })).toEqual([
    [RESET, "reject"],
    [RESET, "reject"],
  ]);
  expect(refusals({ internal: "Local", endpoints: ELSEWHERE })).toEqual([[RESET, "drop"]]);
});

test("not with UDP, and not unless it is asked for", () => {
  expect(refusals({ protocol: "UDP", internal: "Local", endpoints: ELSEWHERE })).toEqual([["drop"]]);
  expect(refusals({ endpoints: NO_ENDPOINT }, false)).toEqual([["reject"]]);
  expect(refusals({ internal: "Local", endpoints: ELSEWHERE }, false)).toEqual([["drop"]]);
});

test("hostile names do not change the words of a rule", async () => {
  const benign = tableNamed("default/web");
  const words = (table: NftTable) =>
    tableText(table)
      .replace(/"[^"\n]*"/g, "")
      .replace(/firewall-\S+/g, "");
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 300 }), (name) => {
      const table = tableNamed(name);
      const text = tableText(table);
      expect(words(table)).toBe(words(benign));
      expect(text).toMatch(/^[\t\n\x20-\x7e]*$/);
      expect(text.split("\n")).toHaveLength(tableText(benign).split("\n").length);
      for (const chain of table.chains.keys()) expect(chain).toMatch(/^[\w./-]{1,255}$/);
    }),
    { numRuns: runs(150) },
  );
});

/** The table of a service with every frontend, under this name. */
function tableNamed(name: string): NftTable {
  const world = openWorld();
  world.change([[1, webState({ type: "LoadBalancer", externalIP: true, ranges: true })]]);
  const { plan } = world;
  const groups = new Map(
    Array.from(plan.groups, ([id, group]): [string, ServicePortGroup] => [id, { ...group, name }]),
  );
  return planTable({ ...plan, ...parts(plan), groups });
}

/** A live plan's own properties are getters, which a spread leaves out. */
function parts({ family, node, healthChecks, foreignClusterIPs, endpointCount }: ForwardingPlan) {
  return { family, node, healthChecks, foreignClusterIPs, endpointCount };
}
