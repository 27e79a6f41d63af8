import { describe, expect, test } from "vitest";
import {
  ClusterState,
  type EndpointFilter,
  Planner,
  type PlannerOptions,
  releasedFlows,
  type Service,
} from "../src/index.ts";
import {
  endpoint,
  fakeFilter,
  flow,
  HERE,
  Memory,
  NO_SHORT_CUT,
  OPTIONS,
  replan,
  SHORT_CUT,
  service,
  slice,
} from "./objects.ts";

const FOREIGN = "10.244.1.5";
const OWN = "10.144.1.5";
const CIDRS = ["10.244.0.0/16"];
const CAN = { ...SHORT_CUT, excludesClients: true } as const;

function filterOf(clients: readonly string[]): EndpointFilter {
  return { ...fakeFilter("excluded-clients"), excludedClients: () => clients };
}

function cluster(addresses: readonly string[], fields: Partial<Service> = {}, options: Partial<PlannerOptions> = {}) {
  const state = new ClusterState();
  const all = { ...OPTIONS, semantics: CAN, filter: filterOf(CIDRS), ...options };
  const planner = new Planner(all);
  const memory = new Memory();
  const step = () => replan(planner, state, memory);
  const move = (to: readonly string[]) => {
    const ports = (["TCP", "UDP"] as const).map((protocol) => ({ name: "", protocol, port: 8080 }));
    state.upsertSlice(
      slice(
        "web",
        to.map((address) => endpoint(address, HERE)),
        { ports },
      ),
    );
    return step();
  };
  state.upsertService(service("web", fields));
  return { state, planner, options: all, move, step, first: move(addresses), plan: planner.plan("IPv4") };
}

const NODE_PORT = { ports: [{ name: "", protocol: "UDP", port: 53, nodePort: 30_053 }] } as const;
const UDP_PORT = { ports: [{ name: "", protocol: "UDP", port: 53 }] } as const;
const frontends = (plan: ReturnType<typeof cluster>["plan"]) => plan.groups.get("default/web/udp")?.frontends;

describe("a foreign service that only some clients are to be left with", () => {
  test("is served with all endpoints; at its ClusterIP those clients are named, elsewhere no client is", () => {
    const { plan } = cluster([FOREIGN], NODE_PORT);
    expect(frontends(plan)).toMatchObject([
      { kind: "cluster-ip", excludedClients: CIDRS, treatments: { pod: { verdict: "proxy" } } },
      { kind: "node-port", treatments: { outside: { verdict: "proxy" } } },
    ]);
    expect(frontends(plan)?.[1]).not.toHaveProperty("excludedClients");
    expect(plan.node.excludedClients).toEqual(CIDRS);
    expect([...plan.foreignClusterIPs]).toEqual(["10.96.0.10"]);
  });

  test("is counted as foreign", () => {
    const { planner } = cluster([FOREIGN]);
    expect(planner.counts("IPv4").services).toEqual({ ours: 0, foreign: 1, mixed: 0 });
  });

  test("that is protected is served to all clients where the mode cannot distinguish them", () => {
    const filter = filterOf(CIDRS);
    const decide: EndpointFilter["decide"] = (...args) => ({ ...filter.decide(...args), protected: true });
    const { plan, planner } = cluster([FOREIGN], NODE_PORT, { semantics: NO_SHORT_CUT, filter: { ...filter, decide } });
    expect(frontends(plan)).toMatchObject([
      { kind: "cluster-ip", treatments: { pod: { verdict: "proxy" }, node: { verdict: "proxy" } } },
      { kind: "node-port" },
    ]);
    expect([...plan.foreignClusterIPs]).toEqual([]);
    expect(planner.counts("IPv4").services).toEqual({ ours: 1, foreign: 0, mixed: 0 });
  });

  test("whose endpoints answer past this node: our pods are masqueraded, in a mode that cannot distinguish clients, too", () => {
    const filter = filterOf(CIDRS);
    const pod = { verdict: "proxy", masquerade: true };
    for (const semantics of [CAN, NO_SHORT_CUT]) {
      const decide: EndpointFilter["decide"] = (...args) => {
        return { ...filter.decide(...args), protected: true, masqueradesPods: true };
      };
      const { plan } = cluster([FOREIGN], UDP_PORT, { semantics, filter: { ...filter, decide } });
      expect(frontends(plan)).toMatchObject([{ kind: "cluster-ip", treatments: { pod } }]);
    }
  });

  test("is left for all where the mode cannot distinguish clients, and a problem says so", () => {
    const { plan, planner } = cluster([FOREIGN], NODE_PORT, { semantics: NO_SHORT_CUT });
    expect(frontends(plan)).toMatchObject([
      { kind: "cluster-ip", treatments: { pod: { verdict: "leave" }, node: { verdict: "leave" } } },
      { kind: "node-port" },
    ]);
    expect(plan.node).not.toHaveProperty("excludedClients");
    const decision = planner.ownership("default/web", "IPv4");
    expect(decision?.frontends).toBe("all-but-cluster-ip");
    expect(decision?.why).toMatch(/in this mode for all clients$/);
  });

  test("gives its ClusterIP to no other service, at any port", () => {
    const { state, step, plan } = cluster([FOREIGN]);
    const ports = [{ name: "", protocol: "TCP", port: 443 }] as const;
    state.upsertService(service("aaa", { clusterIPs: ["10.96.0.11"], externalIPs: ["10.96.0.10"], ports }));
    expect(step().problems).toMatchObject([{ name: "aaa", field: "spec.externalIPs" }]);
    expect(plan.groups.get("default/aaa/tcp")?.frontends.map(({ kind }) => kind)).toEqual(["cluster-ip"]);
  });

  test("a service of ours names no client", () => {
    const { plan } = cluster([OWN], NODE_PORT);
    expect(frontends(plan)?.every((one) => one.excludedClients === undefined)).toBe(true);
  });
});

describe("conntrack entries that we made for clients which are excluded now", () => {
  test("are released when a service of ours turns foreign: at the ClusterIP only", () => {
    const { move } = cluster([OWN], NODE_PORT);
    const { released } = move([FOREIGN]);
    expect(released.map((group) => group.frontends.map(({ kind }) => kind))).toEqual([["cluster-ip"]]);
  });

  test("those of clients that we go on serving stay", () => {
    const { move } = cluster([OWN], NODE_PORT);
    const { released } = move([FOREIGN]);
    const unknown = flow(`udp 10.96.0.10:53 <- ${OWN}:8080`);
    const flows = ["10.144.0.9", "10.244.7.7"].map((originalSource) => ({ ...unknown, originalSource }));
    expect([...releasedFlows(released, [...flows, unknown])]).toEqual([flows[1], unknown]);
  });

  test("are released when CIDRs are added, and not otherwise", () => {
    const { planner, options, move, step } = cluster([FOREIGN], NODE_PORT);
    expect(move(["10.244.1.6"]).released).toEqual([]);
    planner.setOptions({ ...options, filter: filterOf([...CIDRS, "10.245.0.0/16"]) }, []);
    expect(step().released).toHaveLength(1);
  });
});

test("other CIDRs concern every service that is divided so, and those only", () => {
  const { state, planner, options, step, plan } = cluster([FOREIGN]);
  state.upsertService(service("own", { clusterIPs: ["10.96.0.11"] }));
  state.upsertSlice(slice("own", [endpoint(OWN)]));
  step();
  const more = [...CIDRS, "10.245.0.0/16"];
  expect(planner.setOptions({ ...options, filter: filterOf(more) }, [])).toBe("concerned");
  const change = step().changes.get("IPv4");
  expect([...(change?.groups.keys() ?? [])]).toEqual(["default/web/tcp"]);
  expect(change?.node?.after.excludedClients).toEqual(more);
  expect(plan.groups.get("default/web/tcp")?.frontends[0]?.excludedClients).toEqual(more);
  expect(planner.setOptions({ ...options, filter: filterOf([]) }, [])).toBe("concerned");
  step();
  expect(plan.groups.get("default/web/tcp")?.frontends[0]).not.toHaveProperty("excludedClients");
});
