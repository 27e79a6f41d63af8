import { toEnd } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import {
  ClusterState,
  type EndpointFilter,
  type Ownership,
  Planner,
  releasedFlows,
  type Service,
} from "../src/index.ts";
import { addressesOf, endpoint, fakeFilter, HERE, Memory, OPTIONS, replan, service, slice } from "./objects.ts";

const OWN = "10.144.1.5";
const FOREIGN = "10.244.1.5";
const GROUP = "default/web/tcp";

function cluster(addresses: readonly string[], fields: Partial<Service> = {}, filter: EndpointFilter = fakeFilter()) {
  const state = new ClusterState();
  const planner = new Planner({ ...OPTIONS, filter });
  const memory = new Memory();
  const move = (to: readonly string[]) => {
    state.upsertSlice(
      slice(
        "web",
        to.map((address) => endpoint(address, HERE)),
        { ports: (["TCP", "UDP"] as const).map((protocol) => ({ name: "", protocol, port: 8080 })) },
      ),
    );
    return replan(planner, state, memory);
  };
  state.upsertService(service("web", fields));
  const step = move(addresses);
  return { state, planner, memory, move, step, plan: planner.plan("IPv4") };
}

const LOAD_BALANCER = {
  ports: [{ name: "", protocol: "UDP", port: 53, nodePort: 30_053 }],
  externalIPs: ["198.51.100.1"],
  loadBalancerIPs: ["203.0.113.1"],
  externalTrafficPolicy: "Local",
  healthCheckNodePort: 31_000,
} as const;

describe("a service", () => {
  test("with own endpoints is ours", () => {
    const { plan, planner, memory } = cluster([OWN]);
    expect(plan.groups.has(GROUP)).toBe(true);
    expect(plan.foreignClusterIPs.size).toBe(0);
    expect(planner.ownership("default/web", "IPv4")?.ownership).toBe("ours");
    expect(planner.ownership("default/web", "IPv6")).toBeUndefined();
    expect(memory.get("default/web", "IPv4")).toBe("ours");
  });

  test("with only excluded endpoints leaves no trace but its ClusterIP among the foreign ones", () => {
    const { plan, planner, step } = cluster([FOREIGN], LOAD_BALANCER);
    expect(plan.groups.size).toBe(0);
    expect(plan.healthChecks.size).toBe(0);
    expect([...plan.foreignClusterIPs]).toEqual(["10.96.0.10"]);
    expect(step.changes.get("IPv4")?.foreignClusterIPs).toEqual({ added: ["10.96.0.10"], removed: [] });
    expect(planner.lookup("IPv4").at("UDP", "10.96.0.10", 53)).toBeUndefined();
    expect(planner.counts("IPv4")).toMatchObject({ services: { ours: 0, foreign: 1, mixed: 0 }, endpointsExcluded: 1 });
  });

  test("with some of each is proxied to its own, and the filter comes before everything else", () => {
    const { plan, planner } = cluster([OWN, FOREIGN], {
      ...LOAD_BALANCER,
      ports: [{ name: "", protocol: "TCP", port: 80 }],
    });
    const group = plan.groups.get(GROUP);
    expect(group?.endpointCount).toBe(1);
    for (const list of [group?.cluster, group?.local, group?.serving]) expect(addressesOf(list)).toEqual([OWN]);
    expect(plan.healthChecks.get("default/web")?.localEndpoints).toBe(1);
    expect(plan.foreignClusterIPs.size).toBe(0);
    expect(planner.counts("IPv4")).toMatchObject({ services: { ours: 0, foreign: 0, mixed: 1 }, endpointsExcluded: 1 });
  });

  test.each<[Ownership | undefined, number]>([
    ["foreign", 0],
    ["ours", 1],
    [undefined, 1],
  ])("without endpoints is what the memory says: %s", (remembered, groups) => {
    const state = new ClusterState();
    const memory = new Memory();
    if (remembered !== undefined) memory.entries.set("IPv4 default/web", remembered);
    state.upsertService(service("web"));
    const planner = new Planner({ ...OPTIONS, filter: fakeFilter() });
    const step = replan(planner, state, memory);
    expect(planner.plan("IPv4").groups.size).toBe(groups);
    expect(step.memory).toEqual([]);
    expect(step.ownershipChanges).toEqual([]);
  });
});

describe("excluded frontends cluster-ip", () => {
  test("leave the ClusterIP of a foreign service and proxy the rest to all its endpoints", () => {
    const { plan, planner } = cluster([FOREIGN], LOAD_BALANCER, fakeFilter("cluster-ip"));
    const group = plan.groups.get("default/web/udp");
    const verdicts = group?.frontends.map(({ kind, treatments }) => [kind, treatments.outside.verdict]);
    expect(verdicts).toEqual([
      ["cluster-ip", "leave"],
      ["external-ip", "proxy"],
      ["load-balancer", "proxy"],
      ["node-port", "proxy"],
    ]);
    expect(addressesOf(group?.local)).toEqual([FOREIGN]);
    expect([...plan.foreignClusterIPs]).toEqual(["10.96.0.10"]);
    expect(plan.healthChecks.has("default/web")).toBe(true);
    expect(planner.lookup("IPv4").at("UDP", "10.96.0.10", 53)).toBeUndefined();
    expect(planner.lookup("IPv4").at("UDP", "203.0.113.1", 53)).toBe(group);
    expect(planner.counts("IPv4").endpointsExcluded).toBe(0);
  });

  test("leave no group of a service that has nothing else", () => {
    const { plan } = cluster([FOREIGN], {}, fakeFilter("cluster-ip"));
    expect(plan.groups.size).toBe(0);
    expect([...plan.foreignClusterIPs]).toEqual(["10.96.0.10"]);
  });
});

describe("a change of owner", () => {
  test("is reported once, with the old owner, the new owner and why", () => {
    const { move } = cluster([OWN]);
    const { ownershipChanges, memory } = move([FOREIGN]);
    const change = { service: "default/web", family: "IPv4", from: "ours", to: "foreign", why: "0 own, 1 excluded" };
    expect(ownershipChanges).toEqual([change]);
    expect(memory).toEqual([{ service: "default/web", family: "IPv4", ownership: "foreign" }]);
    expect(move(["10.244.1.6"])).toMatchObject({ ownershipChanges: [], memory: [] });
    expect(move([])).toMatchObject({ ownershipChanges: [], memory: [] });
    expect(move([OWN]).ownershipChanges).toMatchObject([{ from: "foreign", to: "ours" }]);
  });

  test("to foreign releases what we had, frontends and endpoints, in the step that takes it away", () => {
    const { plan, move } = cluster([OWN], LOAD_BALANCER);
    const group = plan.groups.get("default/web/udp");
    const step = move([FOREIGN]);
    expect(step.released).toEqual([group]);
    expect(step.changes.get("IPv4")?.groups.get("default/web/udp")).toEqual({ before: group });
    expect(move(["10.244.1.6"]).released).toEqual([]);
  });

  test("that leaves the ClusterIP to the other network releases just that", () => {
    const { move } = cluster([OWN], LOAD_BALANCER, fakeFilter("cluster-ip"));
    const { released } = move([FOREIGN]);
    expect(released.map((group) => group.frontends.map((one) => one.kind))).toEqual([["cluster-ip"]]);
    expect(released.map((group) => addressesOf(group.serving))).toEqual([[OWN]]);
  });

  describe("that happened while no proxy ran", () => {
    const start = (remembered: Ownership, filter: EndpointFilter = fakeFilter()) => {
      const state = new ClusterState();
      state.upsertService(service("web", { ports: [{ name: "", protocol: "UDP", port: 53, nodePort: 30_053 }] }));
      state.upsertSlice(slice("web", [endpoint(FOREIGN)], { ports: [{ name: "", protocol: "UDP", port: 5353 }] }));
      const memory = new Memory();
      memory.entries.set("IPv4 default/web", remembered);
      return toEnd(new Planner({ ...OPTIONS, filter }).replan(state, "all", memory));
    };
    const answered = (by: string, to = "10.96.0.10", port = 53) => ({
      family: "IPv4" as const,
      protocol: "udp",
      originalDestination: to,
      originalPort: port,
      replySource: by,
      replyPort: 5353,
    });

    test.each([
      ["an endpoint that is gone", answered("10.144.9.9"), true],
      ["an endpoint that the service has now, which the other network translated to", answered(FOREIGN), false],
      ["another of the other network's, gone meanwhile", answered("10.244.9.9"), false],
      ["no endpoint, since nothing translated it", { ...answered("10.96.0.10"), replyPort: 53 }, false],
      [
        "an endpoint by a node port, which any program may have translated",
        answered("10.144.9.9", "10.201.0.10", 30_053),
        false,
      ],
    ])("releases flows that only we can have made: answered by %s: %s", (_, flow, ours) => {
      const step = start("ours");
      expect(step.ownershipChanges).toMatchObject([{ from: "ours", to: "foreign" }]);
      expect([...releasedFlows(step.released, [flow])]).toEqual(ours ? [flow] : []);
    });

    test("releases nothing that it had not, and nothing where the owner of an address is unknown", () => {
      expect(start("foreign")).toMatchObject({ ownershipChanges: [], released: [] });
      const { isForeign: _, ...unknowing } = fakeFilter();
      expect(start("ours", unknowing).released).toEqual([]);
    });
  });
});

describe("the memory", () => {
  test("forgets with a full plan what went while no agent watched", () => {
    const { state, planner, memory } = cluster([OWN]);
    memory.entries.set("IPv6 gone/long-ago", "foreign");
    expect(toEnd(planner.replan(state, "all", memory)).memory).toEqual([{ service: "gone/long-ago", family: "IPv6" }]);
  });

  test("of a family that isn't planned stays", () => {
    const { state, planner, memory } = cluster([OWN]);
    planner.setOptions({ ...OPTIONS, families: ["IPv6"], filter: fakeFilter() });
    expect(replan(planner, state, memory).memory).toEqual([]);
    expect(memory.get("default/web", "IPv4")).toBe("ours");
  });

  test("is not needed without a filter, but set right if it says otherwise", () => {
    const state = new ClusterState();
    const memory = new Memory();
    memory.entries.set("IPv4 default/web", "foreign");
    for (const name of ["web", "api"])
      state.upsertService(service(name, { clusterIPs: [`10.96.1.${name.length}${name.charCodeAt(0) % 10}`] }));
    const planner = new Planner(OPTIONS);
    const step = replan(planner, state, memory);
    expect(step.memory).toEqual([{ service: "default/web", family: "IPv4", ownership: "ours" }]);
    expect(step.ownershipChanges).toMatchObject([{ from: "foreign", to: "ours" }]);
    expect(planner.plan("IPv4").groups.size).toBe(2);
  });
});

describe("another filter", () => {
  const two = () => {
    const made = cluster([OWN]);
    made.state.upsertService(service("api", { clusterIPs: ["10.96.0.11"] }));
    made.state.upsertSlice(slice("api", [endpoint(OWN, HERE)]));
    replan(made.planner, made.state, made.memory);
    return made;
  };
  const decided = ({ planner }: ReturnType<typeof two>) =>
    ["default/web", "default/api"].map((key) => planner.ownership(key as `${string}/${string}`, "IPv4")?.ownership);
  // For it everything is foreign.
  const other = { ...OPTIONS, filter: { ...fakeFilter(), decide: always("foreign") } };

  test("is asked of all services", () => {
    const made = two();
    expect(made.planner.setOptions(other)).toBe("all");
    replan(made.planner, made.state, made.memory);
    expect(decided(made)).toEqual(["foreign", "foreign"]);
  });

  test("is asked only of those that it concerns, where that is known", () => {
    const made = two();
    expect(made.planner.setOptions(other, ["default/api"])).toBe("concerned");
    const step = replan(made.planner, made.state, made.memory);
    expect(step.ownershipChanges.map(({ service: key }) => key)).toEqual(["default/api"]);
    expect(decided(made)).toEqual(["ours", "foreign"]);
    expect(made.planner.setOptions({ ...other, nodeName: "node-b" }, [])).toBe("all");
  });

  test("twice before a step is asked of what either concerns", () => {
    const made = two();
    made.planner.setOptions({ ...OPTIONS, filter: fakeFilter() }, ["default/api"]);
    made.planner.setOptions(other, ["default/web"]);
    replan(made.planner, made.state, made.memory);
    expect(decided(made)).toEqual(["foreign", "foreign"]);
  });
});

function always(ownership: Ownership): EndpointFilter["decide"] {
  return (...asked) => ({ ...fakeFilter().decide(...asked), ownership, decided: true, frontends: "none" });
}

test("what the filter finds wrong with a service is reported once", () => {
  const { state, planner, step, memory, move } = cluster([OWN], { annotations: { "fairlead.dev/ownership": "mine" } });
  expect(step.problems).toMatchObject([
    { name: "web", field: "metadata.annotations", reason: "annotation mine means nothing" },
  ]);
  expect(move([OWN, "10.144.1.6"]).problems).toEqual([]);
  state.upsertService(service("web", { annotations: { "fairlead.dev/ownership": "theirs" } }));
  expect(replan(planner, state, memory).problems).toHaveLength(1);
});

test("every decision that holds can be asked for", () => {
  const { planner, state, memory } = cluster([FOREIGN]);
  state.upsertService(service("dual", { clusterIPs: ["10.96.0.11", "fd00::11"] }));
  replan(planner, state, memory);
  const all = [...planner.ownerships()].map(
    ({ service: key, family, decision }) => `${family} ${key} ${decision.ownership}`,
  );
  expect(all.sort()).toEqual(["IPv4 default/dual ours", "IPv4 default/web foreign", "IPv6 default/dual ours"]);
});

test("a ClusterIP that two foreign services have stays foreign until both are gone", () => {
  const { state, planner, memory, plan } = cluster([FOREIGN]);
  state.upsertService(service("twin"));
  state.upsertSlice(slice("twin", [endpoint(FOREIGN)]));
  replan(planner, state, memory);
  state.deleteService("default", "web");
  expect(replan(planner, state, memory).changes.get("IPv4")?.foreignClusterIPs).toBeUndefined();
  expect(plan.foreignClusterIPs.size).toBe(1);
  state.deleteService("default", "twin");
  expect(replan(planner, state, memory).changes.get("IPv4")?.foreignClusterIPs.removed).toEqual(["10.96.0.10"]);
});
