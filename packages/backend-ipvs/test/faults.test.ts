import type { Fault } from "@fairlead/kernel/fake";
import { compareRuleSets } from "@fairlead/netfilter";
import { noChange, slotChanges, webState } from "@fairlead/testkit/histories";
import { clusterIPGroup, nodePlan, planOf } from "@fairlead/testkit/plans";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createIpvsBackend, type ServersPort } from "../src/index.ts";
import { FakeNode, objectsOf, weights } from "./support/fake-node.ts";
import { Live, live, openWorld, whereabouts, wrongEnds } from "./support/world.ts";

const SLOTS = [1, 2, 4];
const slots = slotChanges(SLOTS);
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constant<Fault>({ kind: "fail" }),
  fc.constant<Fault>({ kind: "lost" }),
  fc.integer({ min: 1, max: 20 }).map((transactions): Fault => ({ kind: "kill", transactions })),
);

describe("a fault at any process: what served goes on serving, and the next sync converges", () => {
  test("in a change", async () => {
    await fc.assert(
      fc.asyncProperty(slots, slots, fault, fc.integer({ min: 1, max: 6 }), async (before, after, injected, call) => {
        const made = await live([before]);
        const old = whereabouts(made.node, SLOTS);
        made.node.faults.failCall(made.node.faults.calls.length + call, injected);
        await ignoringFault(made.change(after));
        made.node.faults.clear();
        await expectOldOrNew(made, old);
        await made.sync();
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(12) },
    );
  });

  test("in a change, and the caller goes on with changes", async () => {
    await fc.assert(
      fc.asyncProperty(slots, slots, slots, fault, async (before, after, later, injected) => {
        const made = await live([before]);
        made.node.faults.failNext(injected);
        for (const step of [after, later]) await ignoringFault(made.change(step));
        made.node.faults.clear();
        await made.sync();
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(20) },
    );
  });

  test("in a full sync over what serves", async () => {
    await fc.assert(
      fc.asyncProperty(slots, slots, fault, fc.integer({ min: 1, max: 18 }), async (before, after, injected, call) => {
        const made = await live([before]);
        const old = whereabouts(made.node, SLOTS);
        made.world.change(after);
        made.node.faults.failCall(made.node.faults.calls.length + call, injected);
        await ignoringFault(made.restart());
        made.node.faults.clear();
        await expectOldOrNew(made, old);
        await made.sync();
        expect(await made.differences()).toEqual([]);
      }),
      { numRuns: runs(10) },
    );
  });

  test("the node is kept from a node port until its virtual server is gone", async () => {
    const leaving = async () => {
      const made = await live([[[1, webState({ type: "NodePort", nodePortRanges: true })]]]);
      const old = whereabouts(made.node, SLOTS);
      made.world.change([[1, undefined]]);
      return { made, old };
    };
    const { made: whole } = await leaving();
    const calls = await whole.node.calls(() => whole.restart());
    expect(calls.length).toBeGreaterThan(5);
    for (const at of calls.keys()) {
      const { made, old } = await leaving();
      made.node.faults.failCall(made.node.faults.calls.length + at + 1, { kind: "fail" });
      await ignoringFault(made.restart());
      made.node.faults.clear();
      await expectOldOrNew(made, old);
    }
  });

  test("what ipvsadm skips in silence is found when read back", async () => {
    const node = new FakeNode();
    const port = node.port("IPv4");
    const deaf = { ...port, servers: { ...readers(node), change: async () => {} } };
    const world = openWorld();
    world.change([[1, webState()]]);
    await expect(createIpvsBackend(deaf).sync(world.plan)).rejects.toThrow("differ from what was written");
    await createIpvsBackend(port).sync(world.plan);
    expect(weights(node).get("-t 10.96.3.1:80")).toEqual(["10.144.0.4:8080 1"]);
  });
});

function readers({ servers }: FakeNode): Pick<ServersPort, "save" | "connections"> {
  return { save: () => servers.save(), connections: (keys) => servers.connections(keys) };
}

async function expectOldOrNew(made: Awaited<ReturnType<typeof live>>, old: ReturnType<typeof whereabouts>) {
  const world = openWorld();
  world.change(made.world.slots);
  const fresh = await live([], { world });
  expect(wrongEnds(whereabouts(made.node, SLOTS), old, whereabouts(fresh.node, SLOTS))).toEqual([]);
}

async function ignoringFault(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof Error) || !["CommandError", "IptablesError"].includes(error.name)) throw error;
  });
}

test("a set is made with room for what the plan needs, and others as kube-proxy makes them", async () => {
  const onNode = Array.from({ length: 66_000 }, (_, n) => {
    return { address: `10.${144 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`, port: 8080, local: true };
  });
  const node = new FakeNode();
  const plan = planOf([clusterIPGroup("web", "10.96.0.10", [], { onNode })], nodePlan({ kind: "none" }));
  expect((await createIpvsBackend(node.port("IPv4")).sync(plan)).refused).toBeUndefined();
  const made = new Map(node.sets.sets().map((set) => [set.name, set]));
  expect(made.get("KUBE-LOOP-BACK")).toMatchObject({ maxElements: 262_144 });
  expect(made.get("KUBE-LOOP-BACK")?.members.size).toBe(66_000);
  expect(made.get("KUBE-CLUSTER-IP")).not.toHaveProperty("maxElements");
});

describe("an ipset that has no room for all members", () => {
  const services = (count: number): [number, ReturnType<typeof webState>][] =>
    Array.from({ length: count }, (_, at) => [at + 1, webState({ type: "ClusterIP" })]);
  const start = async (count: number) => {
    const made = new Live({ node: new FakeNode({ maxElements: 4 }) });
    made.world.change(services(count));
    return { made, report: await made.backend.sync(made.world.plan) };
  };

  test("at the start: every virtual server and every rule is there, and the report names set and member", async () => {
    const { made, report } = await start(6);
    expect(report.refused?.length).toBeGreaterThan(0);
    expect(report.refused?.[0]).toMatch(/^ipset: add KUBE-\S+ 10\.\S+: Hash is full/);
    const roomy = new Live();
    roomy.world.change(services(6));
    await roomy.sync();
    const refused = objectsOf(roomy.node).filter((line) => !objectsOf(made.node).includes(line));
    expect(refused).toHaveLength(report.refused?.length ?? 0);
    for (const line of refused) expect(line).toMatch(/^KUBE-\S+ 10\.\S+$/);
    expect(compareRuleSets(roomy.node.rules.IPv4.ruleSet(), made.node.rules.IPv4.ruleSet())).toEqual([]);
  });

  test("while it serves: a new service has its virtual server, and the rest does not differ from the plan", async () => {
    const { made } = await start(2);
    const report = await made.backend.apply(made.world.plan, made.world.change(services(6)) ?? noChange);
    expect(report.refused?.length).toBeGreaterThan(0);
    expect(made.node.servers.servers().length).toBe((await start(6)).made.node.servers.servers().length);
    expect(await made.backend.difference(made.world.plan)).toBeUndefined();
  });

  test("once there is room, the next full sync writes what was refused", async () => {
    const { made } = await start(6);
    made.world.change(services(6).map(([slot]) => [slot, slot > 2 ? undefined : webState({ type: "ClusterIP" })]));
    const report = await made.backend.sync(made.world.plan);
    expect(report.refused).toBeUndefined();
    expect(await made.differences()).toEqual([]);
  });
});
