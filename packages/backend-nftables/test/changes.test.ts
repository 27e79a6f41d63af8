import type { ForwardingPlan, PlanChange } from "@fairlead/core";
import { FakeNftables } from "@fairlead/kernel/fake";
import { noChange, type SlotState, slotChanges, webState } from "@fairlead/testkit/histories";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNftablesBackend, planTable } from "../src/index.ts";
import { planOfEveryKind } from "./support/every-kind.ts";
import { described } from "./support/tables.ts";
import { openLive, recorded } from "./support/world.ts";

type Endpoints = SlotState["endpoints"];
const ONE: Endpoints = ["ready", "none", "none", "none"];
const TWO: Endpoints = ["ready", "none", "ready", "none"];
const OTHER_TWO: Endpoints = ["none", "none", "ready", "ready"];
const THREE: Endpoints = ["ready", "none", "ready", "ready"];

const EXTERNAL = { type: "LoadBalancer", externalIP: true } as const;

describe("a change of endpoints is elements of maps of endpoints, and nothing else", () => {
  test.each([
    ["one more", {}, ONE, TWO],
    ["one less", {}, TWO, ONE],
    ["others", {}, TWO, OTHER_TWO],
    ["one more, of a service with every frontend", EXTERNAL, ONE, TWO],
    ["others, of a service that remembers clients", { affinity: true }, TWO, OTHER_TWO],
    [
      "others elsewhere, of a service of policy Local",
      { ...EXTERNAL, external: "Local" },
      TWO,
      ["ready", "none", "none", "ready"],
    ],
  ] as const)("%s", async (_, state, before, after) => {
    const { objects } = await changed(
      webState({ ...state, endpoints: before }),
      webState({ ...state, endpoints: after }),
    );
    const names = objects
      .filter(({ name }) => name !== "hairpin-connections")
      .map(({ what, name }) => `${what} ${name}`);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names)
      expect(name).toMatch(/^element (?:(?:nodeport-)?(?:local-)?endpoints-\d+|sticky-(?:slots|endpoints))$/);
  });

  test("whatever they are, as long as the class is the same", async () => {
    const some = fc.subarray([0, 1, 2, 3], { minLength: 2, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(slotChanges([1], 1), some, some, async ([change], first, second) => {
        const made = { ...(change?.[1] ?? webState()), weights: undefined };
        const of = (list: readonly number[]): Endpoints =>
          [0, 1, 2, 3].map((at) => (list.includes(at) ? "ready" : "none"));
        // Three or four in class 4, and two enter class 3: all of these stay in 4 once they are there.
        const { objects } = await changed(
          { ...made, internal: "Cluster", external: "Cluster", endpoints: of([0, 1, 2]) },
          { ...made, internal: "Cluster", external: "Cluster", endpoints: of(first) },
          { ...made, internal: "Cluster", external: "Cluster", endpoints: of(second) },
        );
        expect(objects.filter(({ what }) => what !== "element")).toEqual([]);
        expect(
          objects.filter(({ name }) => !/endpoints-\d+$|^sticky-(?:slots|endpoints)$|^hairpin-connections$/.test(name)),
        ).toEqual([]);
      }),
      { numRuns: runs(40) },
    );
  });
});

describe("a change of weights is elements of the service port's own map, and nothing else", () => {
  test.each([
    ["one weighs more", {}, THREE, THREE],
    ["one endpoint goes", {}, THREE, TWO],
    ["of a service with every frontend", EXTERNAL, THREE, THREE],
    ["of a service that remembers clients", { affinity: true }, THREE, THREE],
  ] as const)("%s", async (_, state, before, after) => {
    const { objects } = await changed(
      webState({ ...state, endpoints: before, weights: [1, 9, 0] }),
      webState({ ...state, endpoints: after, weights: [1, 4, 0] }),
    );
    expect(objects.length).toBeGreaterThan(0);
    for (const { action, what, name } of objects)
      expect(`${action} ${what} ${name}`).toMatch(
        /^(?:flush set|add element) weighted-\w+-default\/slot-1\/tcp\/main\/cluster(?:\/sticky)?$/,
      );
  });
});

test("a service that needs another class gets it, and the one that is new to the table is made", async () => {
  const { objects } = await changed(webState({ endpoints: ONE }), webState({ endpoints: THREE }));
  expect([...new Set(objects.map(({ action, what, name }) => `${action} ${what} ${name}`))]).toEqual([
    "add set endpoints-4",
    "add chain endpoints-4",
    "add rule endpoints-4",
    "delete element service-ips",
    "delete element endpoints-2",
    "add element endpoints-4",
    "add element service-ips",
  ]);
});

test("what does not differ for the kernel is not sent", async () => {
  const { transactions } = await changed(webState(), webState({ endpoints: ["ready", "terminating", "none", "none"] }));
  expect(transactions).toEqual([]);
});

describe("source ranges", () => {
  const ranged = webState({ type: "LoadBalancer", ranges: true });

  test("the chain goes once the kernel has let go of it", async () => {
    const { backend, clock, table, world } = await openLive();
    await apply({ backend, world }, ranged);
    expect(firewalls(table())).toHaveLength(1);
    await apply({ backend, world }, webState({ type: "LoadBalancer" }));
    expect(firewalls(table())).toEqual([expect.objectContaining({ rules: [] })]);
    expect(await backend.maintain()).toBe(1000);
    clock.advanceNow(1000);
    expect(await backend.maintain()).toBeUndefined();
    expect(firewalls(table())).toEqual([]);
  });

  test("another program may have removed the chain before", async () => {
    const { backend, clock, fake, world } = await openLive();
    await apply({ backend, world }, ranged);
    await apply({ backend, world }, webState({ type: "LoadBalancer" }));
    fake.flush();
    clock.advanceNow(1000);
    expect(await backend.maintain()).toBeUndefined();
  });

  test("a chain that is needed again stays", async () => {
    const { backend, clock, table, world } = await openLive();
    await apply({ backend, world }, ranged);
    await apply({ backend, world }, webState({ type: "LoadBalancer" }));
    await apply({ backend, world }, ranged);
    clock.advanceNow(1000);
    expect(await backend.maintain()).toBeUndefined();
    expect(firewalls(table())).toEqual([expect.objectContaining({ rules: expect.objectContaining({ length: 4 }) })]);
  });
});

test("what services have in common does not accumulate when no service needs it any more", async () => {
  const { backend, table } = await openLive();
  const plan = planOfEveryKind("IPv4");
  await backend.sync(plan);
  const before = table().chains.size;
  const [[id, group] = []] = plan.groups;
  if (id === undefined || group === undefined) throw new Error("the plan is empty");
  const kinds = new Set<string>();
  for (let seconds = 1; seconds < 100; seconds++) {
    const after = { ...group, affinitySeconds: seconds };
    const change = { ...noChange, groups: new Map([[id, { before: group, after }]]) };
    kinds.add((await backend.apply({ ...plan, groups: new Map([...plan.groups, [id, after]]) }, change)).kind);
    expect(table().chains.size).toBeLessThan(2 * before + 300);
  }
  expect([...kinds].sort()).toEqual(["full", "partial"]);
});

test("a refused transaction leaves what was, and the next call is a full sync", async () => {
  const { backend, fake, world, table } = await openLive();
  await apply({ backend, world }, webState());
  const before = table();
  fake.faults.failNext({ kind: "fail", errno: "ENOMEM" });
  const change = world.change([[1, webState({ endpoints: TWO })]]);
  if (change === undefined) throw new Error("nothing changed");
  await expect(backend.apply(world.plan, change)).rejects.toThrow("ENOMEM");
  expect(table()).toEqual(before);
  expect((await backend.apply(world.plan, { ...change, groups: new Map() })).kind).toBe("full");
});

type Live = Pick<Awaited<ReturnType<typeof openLive>>, "backend" | "world">;

async function apply({ backend, world }: Live, state: SlotState): Promise<void> {
  const change = world.change([[1, state]]);
  if (change !== undefined) await backend.apply(world.plan, change);
}

/** What the transactions after the first state were about. */
async function changed(first: SlotState, ...others: readonly SlotState[]) {
  const live = await openLive();
  await apply(live, first);
  live.transactions.length = 0;
  for (const state of others) await apply(live, state);
  return { objects: live.transactions.flat(), transactions: live.transactions };
}

function firewalls({ chains }: ReturnType<Awaited<ReturnType<typeof openLive>>["table"]>) {
  return [...chains.values()].filter(({ name }) => name.startsWith("firewall-") && name.includes("/"));
}

const PLAN = planOfEveryKind("IPv4");
const list = (...addresses: readonly string[]) => ({ kind: "list", addresses }) as const;

test.each([
  ["another ClusterIP of another network", { foreignClusterIPs: new Set(["10.96.0.200", "10.96.0.201"]) }, "partial"],
  ["no ClusterIP of another network any more", { foreignClusterIPs: new Set<string>() }, "partial"],
  ["other service CIDRs", node({ serviceCIDRs: ["10.96.0.0/16", "10.112.0.0/16"] }), "partial"],
  ["no service CIDR that is known", node({ serviceCIDRs: [] }), "partial"],
  ["another address of the node", node({ nodePortAddresses: list("10.201.0.10", "10.201.0.11") }), "partial"],
  ["node ports on every address", node({ nodePortAddresses: { kind: "all" } }), "full"],
  ["another way to recognize pods", node({ detector: { kind: "bridge", interface: "cni0" } }), "full"],
  ["no way to recognize pods", node({ detector: { kind: "none" } }), "full"],
  ["nothing", {}, "partial"],
] as const)("%s, there and back", async (what, after, kind) => {
  const fake = new FakeNftables();
  const { port, transactions } = recorded(fake);
  const backend = createNftablesBackend(port, { family: "IPv4" });
  await backend.sync(PLAN);
  const changed = { ...PLAN, ...after };
  for (const [from, to] of [
    [PLAN, changed],
    [changed, PLAN],
  ] as const) {
    transactions.length = 0;
    expect((await backend.apply(to, between(from, to))).kind).toBe(kind);
    expect(transactions).toHaveLength(what === "nothing" ? 0 : 1);
    const table = fake.tableNow("ip", "kube-proxy");
    expect(table && described(table)).toEqual(described(planTable(to)));
  }
});

test("node ports are not served on loopback addresses", () => {
  const plan = { ...PLAN, ...node({ nodePortAddresses: list("127.0.0.1", "10.201.0.10") }) };
  expect(planTable(plan).sets.get("nodeport-ips")?.elements.size).toBe(1);
});

function node(change: Partial<ForwardingPlan["node"]>): Pick<ForwardingPlan, "node"> {
  return { node: { ...PLAN.node, ...change } };
}

/** What the planner says of two plans with the same groups. */
function between(from: ForwardingPlan, to: ForwardingPlan): PlanChange {
  const without = (a: ReadonlySet<string>, b: ReadonlySet<string>) => [...a].filter((address) => !b.has(address));
  const added = without(to.foreignClusterIPs, from.foreignClusterIPs);
  const removed = without(from.foreignClusterIPs, to.foreignClusterIPs);
  const node = from.node === to.node ? {} : { node: { before: from.node, after: to.node } };
  return { ...noChange, ...node, foreignClusterIPs: { added, removed } };
}
