import { toEnd } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ClusterState, Planner, type PlannerOptions, type Problem, type Service } from "../src/index.ts";
import { Claimants } from "../src/planner/claims.ts";
import { endpoint, fakeFilter, Memory, NO_SHORT_CUT, OPTIONS, replan, SHORT_CUT, service, slice } from "./objects.ts";

const NODE_PORT = [{ name: "", protocol: "TCP", port: 80, nodePort: 30_080 }] as const;

/** Services a, b, c with ClusterIPs of their own that all want one frontend more. */
function rivals(fields: Partial<Service>, order: readonly string[]) {
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  const put = (name: string) =>
    state.upsertService(service(name, { clusterIPs: [`10.96.0.${name.charCodeAt(0)}`], ...fields }));
  const problems = order.flatMap((name) => {
    put(name);
    return replan(planner, state).problems;
  });
  const holders = () =>
    [...planner.plan("IPv4").groups.values()].filter((group) => group.frontends.length > 1).map((group) => group.id);
  return { state, planner, put, problems, holders };
}

const WANTS: readonly [string, Partial<Service>][] = [
  ["an external IP", { externalIPs: ["198.51.100.1"] }],
  ["a load-balancer address", { loadBalancerIPs: ["198.51.100.1"] }],
  ["a node port", { ports: NODE_PORT }],
];

describe.each(WANTS)("%s that several services want", (_, fields) => {
  test("goes to the next when its holder goes or wants it no more, and back", () => {
    const { state, planner, put, holders } = rivals(fields, ["a", "b", "c"]);
    state.deleteService("default", "a");
    const step = replan(planner, state);
    expect(holders()).toEqual(["default/b/tcp"]);
    expect([...(step.changes.get("IPv4")?.groups.keys() ?? [])].sort()).toEqual(["default/a/tcp", "default/b/tcp"]);
    state.upsertService(service("b", { clusterIPs: ["10.96.0.98"] }));
    replan(planner, state);
    expect(holders()).toEqual(["default/c/tcp"]);
    put("a");
    replan(planner, state);
    expect(holders()).toEqual(["default/a/tcp"]);
  });

  test("is a problem of each that lost it, reported once", () => {
    const { state, planner, problems } = rivals(fields, ["c", "b", "a"]);
    // c lost it to b, b lost it to a.
    expect(problems.map((problem) => problem.name)).toEqual(["c", "b"]);
    state.upsertService(service("c", { ...fields, clusterIPs: ["10.96.0.99"], affinitySeconds: 5 }));
    expect(replan(planner, state).problems).toEqual([]);
  });
});

describe("an address of a load balancer", () => {
  const SHARED = "198.51.100.1";
  const holder = (...services: readonly Service[]) => {
    const state = new ClusterState();
    for (const one of services) state.upsertService(one);
    const planner = new Planner(OPTIONS);
    replan(planner, state);
    return planner.lookup("IPv4").at("TCP", SHARED, 80)?.id;
  };
  const balanced = service("victim", { clusterIPs: ["10.96.0.1"], loadBalancerIPs: [SHARED], created: 2_000 });
  const taker = (fields: Partial<Service>) => service("a-taker", { clusterIPs: ["10.96.0.2"], ...fields });

  test("is not taken by an external IP, whatever its Service's name and age", () => {
    expect(holder(balanced, taker({ externalIPs: [SHARED], created: 1_000 }))).toBe("default/victim/tcp");
    expect(holder(balanced, taker({ externalIPs: [SHARED] }))).toBe("default/victim/tcp");
  });

  test("belongs to the older Service, then to the name", () => {
    expect(holder(balanced, taker({ loadBalancerIPs: [SHARED], created: 3_000 }))).toBe("default/victim/tcp");
    expect(holder(balanced, taker({ loadBalancerIPs: [SHARED], created: 1_000 }))).toBe("default/a-taker/tcp");
    expect(holder(balanced, taker({ loadBalancerIPs: [SHARED], created: 2_000 }))).toBe("default/a-taker/tcp");
    expect(holder(balanced, taker({ loadBalancerIPs: [SHARED] }))).toBe("default/victim/tcp");
  });

  test("is no ClusterIP: that is its Service's own", () => {
    const owner = service("victim", { clusterIPs: [SHARED], created: 2_000 });
    expect(holder(owner, taker({ loadBalancerIPs: [SHARED], created: 1_000 }))).toBe("default/victim/tcp");
  });

  test("a Service that is made anew under its name is as old as it says", () => {
    const state = new ClusterState();
    const planner = new Planner(OPTIONS);
    const put = (one: Service) => {
      state.upsertService(one);
      replan(planner, state);
      return planner.lookup("IPv4").at("TCP", SHARED, 80)?.id;
    };
    put(balanced);
    expect(put(taker({ loadBalancerIPs: [SHARED], created: 1_000 }))).toBe("default/a-taker/tcp");
    expect(put(taker({ loadBalancerIPs: [SHARED], created: 4_000 }))).toBe("default/victim/tcp");
    expect(put({ ...balanced, created: 5_000 })).toBe("default/a-taker/tcp");
  });
});

test("an external IP may be another's load-balancer address, and is a problem then", () => {
  const state = new ClusterState();
  state.upsertService(service("b", { clusterIPs: ["10.96.0.2"], externalIPs: ["198.51.100.1"] }));
  state.upsertService(service("a", { clusterIPs: ["10.96.0.1"], loadBalancerIPs: ["198.51.100.1"] }));
  const planner = new Planner(OPTIONS);
  const { problems } = replan(planner, state);
  expect(planner.lookup("IPv4").at("TCP", "198.51.100.1", 80)?.id).toBe("default/a/tcp");
  expect(problems).toEqual([
    {
      kind: "Service",
      namespace: "default",
      name: "b",
      field: "spec.externalIPs",
      value: '"TCP 198.51.100.1 80"',
      reason: "already belongs to default/a/tcp and is only served for it",
    },
  ]);
});

test("another port or protocol is another frontend", () => {
  const state = new ClusterState();
  const externalIPs = ["198.51.100.1"];
  const port = (protocol: "TCP" | "UDP", number: number) => [{ name: "", protocol, port: number }];
  state.upsertService(service("a", { clusterIPs: ["10.96.0.1"], externalIPs, ports: port("TCP", 80) }));
  state.upsertService(service("b", { clusterIPs: ["10.96.0.2"], externalIPs, ports: port("UDP", 80) }));
  state.upsertService(service("c", { clusterIPs: ["10.96.0.3"], externalIPs, ports: port("TCP", 81) }));
  const planner = new Planner(OPTIONS);
  expect(replan(planner, state).problems).toEqual([]);
  expect([...planner.plan("IPv4").groups.values()].map((group) => group.frontends.length)).toEqual([2, 2, 2]);
});

test("inside one service port an address may stand as external IP and as load-balancer address", () => {
  const state = new ClusterState();
  state.upsertService(service("a", { externalIPs: ["198.51.100.1"], loadBalancerIPs: ["198.51.100.1"] }));
  const planner = new Planner(OPTIONS);
  expect(replan(planner, state).problems).toEqual([]);
  const kinds = planner
    .plan("IPv4")
    .groups.get("default/a/tcp")
    ?.frontends.map((frontend) => frontend.kind);
  expect(kinds).toEqual(["cluster-ip", "external-ip", "load-balancer"]);
});

test("a service port that holds nothing has no group", () => {
  const state = new ClusterState();
  state.upsertService(service("a"));
  state.upsertService(service("b"));
  const planner = new Planner(OPTIONS);
  replan(planner, state);
  expect([...planner.plan("IPv4").groups.keys()]).toEqual(["default/a/tcp"]);
  state.deleteService("default", "a");
  replan(planner, state);
  expect([...planner.plan("IPv4").groups.keys()]).toEqual(["default/b/tcp"]);
});

test("two ports of one service on one number are the smaller id's", () => {
  const state = new ClusterState();
  const ports = ["b", "a"].map((name) => ({ name, protocol: "TCP" as const, port: 80 }));
  state.upsertService(service("web", { ports }));
  const planner = new Planner(OPTIONS);
  const { problems } = replan(planner, state);
  expect([...planner.plan("IPv4").groups.keys()]).toEqual(["default/web:a/tcp"]);
  expect(problems).toHaveLength(1);
});

test("of many rivals only those that a change moves are planned again", () => {
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  const name = (i: number) => `s${String(i).padStart(3, "0")}`;
  for (let i = 0; i < 100; i++) {
    state.upsertService(service(name(i), { clusterIPs: [`10.96.0.${i}`], externalIPs: ["198.51.100.1"] }));
  }
  replan(planner, state);
  state.deleteService("default", name(0));
  const steps = [...planner.replan(state, state.takeDirty().services, { get: () => undefined })];
  // Two services, and two groups that they changed.
  expect(steps).toHaveLength(2 + 2);
  expect(planner.lookup("IPv4").at("TCP", "198.51.100.1", 80)?.id).toBe(`default/${name(1)}/tcp`);
});

test("however many services want one address, each is planned once, and once more when it loses it", () => {
  const state = new ClusterState();
  const planner = new Planner(OPTIONS);
  const many = 3_000;
  // Each takes it from the one before.
  for (let i = many; i > 0; i--) {
    const clusterIPs = [`10.96.${i >> 8}.${i & 0xff}`];
    state.upsertService(service(`s${String(i).padStart(5, "0")}`, { clusterIPs, externalIPs: ["198.51.100.1"] }));
  }
  const step = planner.replan(state, state.takeDirty().services, { get: () => undefined });
  let steps = 0;
  let slice = step.next();
  for (; !slice.done; slice = step.next()) steps++;
  // Of the steps one is for each group that changed.
  expect(steps).toBeLessThanOrEqual(3 * many);
  expect(slice.value.problems).toHaveLength(many - 1);
  const reasons = new Set(slice.value.problems.map(({ reason }) => reason));
  expect([...reasons]).toEqual(["already belongs to default/s00001/tcp and is only served for it"]);
});

test("a ClusterIP is its service's own, whatever the name of a service that names it as an external IP", () => {
  const { planner, state } = rivals({ externalIPs: ["10.96.0.122"] }, ["a", "b"]);
  state.upsertService(service("z", { clusterIPs: ["10.96.0.122"] }));
  const { problems } = replan(planner, state);
  const holder = () => planner.lookup("IPv4").at("TCP", "10.96.0.122", 80)?.id;
  expect(holder()).toBe("default/z/tcp");
  expect(problems.map(({ name }) => name)).toEqual(["a"]);
  state.deleteService("default", "z");
  replan(planner, state);
  expect(holder()).toBe("default/a/tcp");
});

const names = fc.constantFrom(..."abcdefghijklmnop");
const moves = fc.array(fc.record({ comes: fc.boolean(), name: names }), { maxLength: 200 });

test("the first is the smallest of the current ones, whatever came and went", () => {
  fc.assert(
    fc.property(fc.array(names), moves, (start, history) => {
      const claimants = new Claimants(start);
      const there = new Set(start);
      for (const { comes, name } of history) {
        if (comes) claimants.add(name);
        else claimants.delete(name);
        if (comes) there.add(name);
        else there.delete(name);
        expect([claimants.first, claimants.size]).toEqual([[...there].sort()[0], there.size]);
      }
    }),
    { numRuns: runs(500) },
  );
});

const CLUSTER_IP = "10.96.95.98";
const SHARED = "203.0.113.1";
const port = (number: number) => [{ name: "", protocol: "TCP", port: number }] as const;
const ovn = (fields: Partial<Service> = {}) => service("ovn", { clusterIPs: [CLUSTER_IP], ...fields });
/** Sorts before and after the foreign one. */
const takers = (fields: Partial<Service> = {}) =>
  ["aaa", "zzz"].map((name, i) =>
    service(name, { clusterIPs: [`10.96.0.${i + 1}`], externalIPs: [CLUSTER_IP], ...fields }),
  );

function world(options: Partial<PlannerOptions> = {}) {
  const state = new ClusterState();
  const memory = new Memory();
  const planner = new Planner({ ...OPTIONS, filter: fakeFilter(), ...options });
  const move = (address: string) => state.upsertSlice(slice("ovn", [endpoint(address)]));
  const step = () => replan(planner, state, memory);
  const served = () =>
    [...planner.plan("IPv4").groups.values()]
      .flatMap(({ id, frontends }) => frontends.map((one) => ({ id, ...one })))
      .filter(({ address, treatments }) => address === CLUSTER_IP && treatments.outside.verdict !== "leave")
      .map(({ id }) => id);
  return { state, memory, planner, move, step, served };
}

const byName = (problems: readonly Problem[]) => problems.toSorted((a, b) => (a.name < b.name ? -1 : 1));

const MODES: readonly [string, Partial<PlannerOptions>][] = [
  ["iptables", { semantics: SHORT_CUT }],
  ["ipvs", { semantics: NO_SHORT_CUT }],
  ["excluded-frontends cluster-ip", { filter: fakeFilter("cluster-ip") }],
];

describe.each(MODES)("%s: a foreign ClusterIP that others name as an external IP", (_, options) => {
  test.each(["first", "last"])("is refused and reported, the foreign service being the %s", (when) => {
    const { state, move, step, served, planner } = world(options);
    const foreign = () => {
      state.upsertService(ovn());
      move("10.244.1.5");
    };
    const others = () => {
      for (const one of takers()) state.upsertService(one);
    };
    const reported = (when === "first" ? [foreign, others] : [others, foreign]).flatMap((change) => {
      change();
      return step().problems;
    });
    expect(served()).toEqual([]);
    expect(planner.lookup("IPv4").at("TCP", CLUSTER_IP, 80)).toBeUndefined();
    expect(byName(reported.filter(({ reason }) => reason.includes("default/ovn")))).toEqual(
      // The last one had lost it to the first before, which was reported.
      (when === "first" ? ["aaa", "zzz"] : ["aaa"]).map((name) => ({
        kind: "Service",
        namespace: "default",
        name,
        field: "spec.externalIPs",
        value: `"TCP ${CLUSTER_IP} 80"`,
        reason: "is the ClusterIP of default/ovn, which another network serves",
      })),
    );
  });

  test("is refused at every port: in ipvs mode the node would take all that goes to the address", () => {
    const { state, move, step, served } = world(options);
    for (const one of takers({ ports: port(443) })) state.upsertService(one);
    state.upsertService(ovn());
    move("10.244.1.5");
    const { problems } = step();
    expect(served()).toEqual([]);
    const reason = "is the ClusterIP of default/ovn, which another network serves";
    expect(byName(problems).map((one) => [one.name, one.value, one.reason])).toEqual(
      ["aaa", "zzz"].map((name) => [name, `"TCP ${CLUSTER_IP} 443"`, reason]),
    );
  });

  test("changes hands with the service, and goes to the next when it goes", () => {
    const { state, move, step, served } = world(options);
    for (const one of takers({ ports: port(443) })) state.upsertService(one);
    state.upsertService(ovn());
    move("10.144.1.5");
    step();
    expect(served()).toEqual(["default/aaa/tcp", "default/ovn/tcp"]);
    move("10.244.1.5");
    expect(step().problems.map(({ name }) => name)).toEqual(["aaa"]);
    expect(served()).toEqual([]);
    move("10.144.1.5");
    expect(step().problems).toEqual([]);
    expect(served()).toEqual(["default/aaa/tcp", "default/ovn/tcp"]);
    move("10.244.1.5");
    step();
    state.deleteService("default", "ovn");
    step();
    expect(served()).toEqual(["default/aaa/tcp"]);
  });

  test("load-balancer addresses are no way round it", () => {
    const { state, move, step, served } = world(options);
    state.upsertService(ovn());
    move("10.244.1.5");
    for (const one of takers({ externalIPs: [], loadBalancerIPs: [CLUSTER_IP] })) state.upsertService(one);
    expect(step().problems.map(({ field }) => field)).toEqual(Array(2).fill("status.loadBalancer.ingress"));
    expect(served()).toEqual([]);
  });
});

test("what else stays with the other network claims nothing against ours, whatever the names and ages", () => {
  const { state, move, step, planner } = world();
  const nodePort = [{ name: "", protocol: "TCP", port: 80, nodePort: 30_080 }] as const;
  state.upsertService(ovn({ loadBalancerIPs: [SHARED], ports: nodePort, created: 1 }));
  move("10.244.1.5");
  const lookup = planner.lookup("IPv4");
  expect(lookup.at("TCP", SHARED, 80)).toBeUndefined();
  state.upsertService(
    service("zzz", { clusterIPs: ["10.96.0.1"], externalIPs: [SHARED], ports: nodePort, created: 2 }),
  );
  const { problems } = step();
  expect(problems.map(({ name, value }) => [name, value])).toEqual([
    ["ovn", `"TCP ${SHARED} 80"`],
    ["ovn", '"TCP * 30080"'],
  ]);
  expect(lookup.at("TCP", SHARED, 80)?.id).toBe("default/zzz/tcp");
  expect(lookup.atNodePort("TCP", 30_080)?.id).toBe("default/zzz/tcp");
});

test("a start finds what a change did", () => {
  const { state, move, memory } = world();
  for (const one of [...takers(), ovn()]) state.upsertService(one);
  move("10.244.1.5");
  const planner = new Planner({ ...OPTIONS, filter: fakeFilter() });
  const { problems } = toEnd(planner.replan(state, "all", memory));
  expect(byName(problems).map(({ name }) => name)).toEqual(["aaa", "zzz"]);
});

test("IPv6 alike", () => {
  const { state, step, planner } = world();
  state.upsertService(ovn({ clusterIPs: ["fd00:10:96::98"] }));
  state.upsertSlice(slice("ovn", [endpoint("fd00:244::5")], { family: "IPv6" }));
  state.upsertService(service("aaa", { clusterIPs: ["fd00:10:96::1"], externalIPs: ["fd00:10:96::98"] }));
  expect(step().problems.map(({ name }) => name)).toEqual(["aaa"]);
  expect(planner.lookup("IPv6").at("TCP", "fd00:10:96::98", 80)).toBeUndefined();
});
