import { toEnd } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import { ClusterState, Planner, type PlannerOptions, type Problem, type Service } from "../src/index.ts";
import { fakeFilter } from "./fake-filter.ts";
import { endpoint, Memory, NO_SHORT_CUT, OPTIONS, replan, SHORT_CUT, service, slice } from "./objects.ts";

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
  test.each(["first", "last"])("is refused them and told, the foreign service being the %s", (when) => {
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
      // The last one had lost it to the first before, and was told so.
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
