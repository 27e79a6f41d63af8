import { toEnd } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import { ClusterState, Planner, type PlannerOptions, type Service, type SliceEndpoint } from "../src/index.ts";
import {
  addressesOf,
  DRAINING,
  endpoint,
  HERE,
  Memory,
  NO_SHORT_CUT,
  OPTIONS,
  replan,
  SHORT_CUT,
  service,
  slice,
} from "./objects.ts";

function planned(
  fields: Partial<Service>,
  endpoints: readonly SliceEndpoint[] = [endpoint("10.144.1.5", HERE), endpoint("10.144.2.6")],
  options: Partial<PlannerOptions> = {},
) {
  const state = new ClusterState();
  state.upsertService(service("web", fields));
  state.upsertSlice(slice("web", endpoints));
  const planner = new Planner({ ...OPTIONS, ...options });
  return { state, planner, plan: planner.plan("IPv4"), step: replan(planner, state) };
}

const GROUP = "default/web/tcp";

describe("a group", () => {
  test("has names, endpoints and what else its service says", () => {
    const ports = [{ name: "http", protocol: "UDP", port: 80 }] as const;
    const { plan, planner, state } = planned({
      ports,
      affinitySeconds: 60,
      annotations: { "fairlead.dev/ipvs-scheduler": "sh" },
    });
    state.upsertSlice(slice("web", [endpoint("10.144.9.9")], { ports: [{ name: "http", protocol: "UDP", port: 81 }] }));
    replan(planner, state);
    const group = plan.groups.get("default/web:http/udp");
    const only = { address: "10.144.9.9", port: 81, local: false };
    expect(group).toEqual({
      id: "default/web:http/udp",
      name: "default/web:http",
      service: "default/web",
      family: "IPv4",
      protocol: "UDP",
      cluster: [only],
      local: [],
      serving: [only],
      endpointCount: 1,
      affinitySeconds: 60,
      frontends: [
        {
          kind: "cluster-ip",
          reach: "internal",
          at: "address",
          address: "10.96.0.10",
          port: 80,
          policy: "Cluster",
          treatments: expect.anything(),
        },
      ],
      annotations: { "fairlead.dev/ipvs-scheduler": "sh" },
    });
    expect(plan.endpointCount).toBe(1);
  });

  test("has no external addresses where they are not allowed, and others may have them", () => {
    const fields = { externalIPs: ["198.51.100.1"], loadBalancerIPs: ["203.0.113.1"] };
    const { plan, planner, state, step } = planned(fields, undefined, { externalIPs: false });
    const kinds = () => plan.groups.get(GROUP)?.frontends.map((one) => one.kind);
    expect(kinds()).toEqual(["cluster-ip", "load-balancer"]);
    expect(step.problems).toEqual([]);
    state.upsertService(service("z", { clusterIPs: ["10.96.0.11"], ...fields, loadBalancerIPs: [] }));
    expect(replan(planner, state).problems).toEqual([]);
    planner.setOptions({ ...OPTIONS, externalIPs: true });
    replan(planner, state);
    expect(kinds()).toEqual(["cluster-ip", "external-ip", "load-balancer"]);
  });

  test("has its frontends in order, those of other families not", () => {
    const { plan } = planned({
      clusterIPs: ["10.96.0.10", "fd00::10"],
      ports: [{ name: "", protocol: "TCP", port: 80, nodePort: 30_080 }],
      externalIPs: ["198.51.100.1", "2001:db8::1"],
      loadBalancerIPs: ["203.0.113.1", "2001:db8::2"],
    });
    const shown = plan.groups.get(GROUP)?.frontends.map((one) => [one.kind, one.address, one.port]);
    expect(shown).toEqual([
      ["cluster-ip", "10.96.0.10", 80],
      ["external-ip", "198.51.100.1", 80],
      ["load-balancer", "203.0.113.1", 80],
      ["node-port", undefined, 30_080],
    ]);
  });

  test("holds one object for an endpoint in several sets, and empty lists for unused sets", () => {
    const node = { ports: [{ name: "", protocol: "TCP", port: 80, nodePort: 30_080 }] } as const;
    const both = planned({ ...node, externalTrafficPolicy: "Local" }).plan.groups.get(GROUP);
    expect(both?.cluster).toHaveLength(2);
    expect(both?.local).toHaveLength(1);
    expect(both?.cluster).toContain(both?.local[0]);
    expect(both?.serving).toEqual(both?.cluster);
    expect(planned(node).plan.groups.get(GROUP)?.local).toEqual([]);
    expect(planned({ internalTrafficPolicy: "Local" }).plan.groups.get(GROUP)?.cluster).toEqual([]);
  });

  test("counts all endpoints, in use or not", () => {
    const endpoints = [
      endpoint("10.144.1.5"),
      endpoint("10.144.1.6", DRAINING),
      endpoint("10.144.1.7", { ready: false, serving: false }),
    ];
    expect(planned({}, endpoints).plan.groups.get(GROUP)).toMatchObject({ endpointCount: 3, serving: { length: 2 } });
  });
});

describe("families", () => {
  test("are independent", () => {
    const state = new ClusterState();
    state.upsertService(service("web", { clusterIPs: ["10.96.0.10", "fd00:10:96::10"] }));
    state.upsertSlice(slice("web", [endpoint("10.144.1.5")]));
    state.upsertSlice(slice("web", [endpoint("fd00:144::5")], { name: "web-6", family: "IPv6" }));
    const planner = new Planner(OPTIONS);
    const step = replan(planner, state);
    expect([...step.changes.keys()]).toEqual(["IPv4", "IPv6"]);
    expect(addressesOf(planner.plan("IPv4").groups.get(GROUP)?.cluster)).toEqual(["10.144.1.5"]);
    expect(addressesOf(planner.plan("IPv6").groups.get(GROUP)?.cluster)).toEqual(["fd00:144::5"]);
    state.upsertSlice(slice("web", [endpoint("fd00:144::6")], { name: "web-6", family: "IPv6" }));
    expect([...replan(planner, state).changes.keys()]).toEqual(["IPv6"]);
  });

  test("a service has no group in a family in which it has no ClusterIP", () => {
    const { planner } = planned({ externalIPs: ["2001:db8::1"] });
    expect(planner.plan("IPv6").groups.size).toBe(0);
  });

  test("a family that is not planned has an empty plan", () => {
    const { plan, step } = planned({}, undefined, { families: ["IPv6"] });
    expect(plan.groups.size).toBe(0);
    expect(step.changes.size).toBe(0);
  });
});

describe("source ranges", () => {
  const fields = {
    externalIPs: ["198.51.100.1"],
    loadBalancerIPs: ["203.0.113.1", "203.0.113.2", "2001:db8::2"],
  };
  const sourcesOf = (ranges: readonly string[]) =>
    planned({ ...fields, loadBalancerSourceRanges: ranges })
      .plan.groups.get(GROUP)
      ?.frontends.map((one) => [one.address, one.gate]);

  test("are only on load-balancer frontends", () => {
    const sources = { ranges: ["192.0.2.0/24"], addresses: [] };
    expect(sourcesOf(["192.0.2.0/24", "2001:db8::/32"])).toEqual([
      ["10.96.0.10", undefined],
      ["198.51.100.1", undefined],
      ["203.0.113.1", sources],
      ["203.0.113.2", sources],
    ]);
  });

  test("that contain the node's address let the service's own addresses of the family in", () => {
    const sources = { ranges: ["192.0.2.0/24", "10.201.0.0/24"], addresses: ["203.0.113.1", "203.0.113.2"] };
    expect(sourcesOf(["192.0.2.0/24", "10.201.0.0/24"])?.[2]).toEqual(["203.0.113.1", sources]);
  });

  test("of only the other family are ignored", () => {
    expect(sourcesOf(["fd00:201::/64"])?.[2]).toEqual(["203.0.113.1", undefined]);
  });
});

describe("a health check", () => {
  const fields = {
    loadBalancerIPs: ["203.0.113.1"],
    externalTrafficPolicy: "Local",
    healthCheckNodePort: 31_000,
  } as const;

  test("counts local ready addresses, and its port is in each group", () => {
    const { plan, step } = planned(fields);
    const check = { service: "default/web", namespace: "default", name: "web", port: 31_000, localEndpoints: 1 };
    expect(plan.healthChecks.get("default/web")).toEqual(check);
    expect(step.changes.get("IPv4")?.healthChecks.get("default/web")).toEqual(check);
    expect(plan.groups.get(GROUP)?.healthCheckPort).toBe(31_000);
  });

  test("is reported again when the count changes, and not when something else does", () => {
    const { planner, state } = planned(fields);
    const replanned = (endpoints: readonly SliceEndpoint[]) => {
      state.upsertSlice(slice("web", endpoints));
      return replan(planner, state).changes.get("IPv4")?.healthChecks.get("default/web")?.localEndpoints;
    };
    expect(replanned([endpoint("10.144.1.5", HERE), endpoint("10.144.2.7")])).toBeUndefined();
    expect(replanned([endpoint("10.144.1.5", HERE), endpoint("10.144.1.6", HERE)])).toBe(2);
    expect(replanned([endpoint("10.144.1.5", { ...HERE, ...DRAINING })])).toBe(0);
  });
});

describe("counts", () => {
  test("service ports without endpoints here, by policy", () => {
    const local = {
      internalTrafficPolicy: "Local",
      externalTrafficPolicy: "Local",
      ports: [{ name: "", protocol: "TCP", port: 80, nodePort: 30_080 }],
    } as const;
    const { planner, state } = planned(local, [endpoint("10.144.2.6")]);
    const counted = () => planner.counts("IPv4").noLocalEndpoints;
    expect(counted()).toEqual({ internal: 1, external: 1 });
    state.upsertSlice(slice("web", [endpoint("10.144.2.6"), endpoint("10.144.1.5", HERE)]));
    replan(planner, state);
    expect(counted()).toEqual({ internal: 0, external: 0 });
    state.upsertSlice(slice("web", []));
    replan(planner, state);
    expect(counted()).toEqual({ internal: 0, external: 0 });
  });

  test("services without endpoints here, in ipvs mode, however many of their ports it is", () => {
    const ports = [
      { name: "http", protocol: "TCP", port: 80 },
      { name: "https", protocol: "TCP", port: 443 },
    ] as const;
    const slicePorts = ports.map(({ name, protocol, port }) => ({ name, protocol, port }));
    const counts = ([SHORT_CUT, NO_SHORT_CUT] as const).map((semantics) => {
      const { planner, state } = planned({ internalTrafficPolicy: "Local", ports }, [], { semantics });
      state.upsertSlice(slice("web", [endpoint("10.144.2.6")], { ports: slicePorts }));
      replan(planner, state);
      return planner.counts("IPv4").noLocalEndpoints;
    });
    expect(counts).toEqual([
      { internal: 2, external: 0 },
      { internal: 1, external: 0 },
    ]);
  });
});

describe("options that change", () => {
  const change = (options: Partial<PlannerOptions>) => {
    const { planner, state } = planned({ internalTrafficPolicy: "Local" }, [endpoint("10.144.2.6")]);
    const dirty = planner.setOptions({ ...OPTIONS, ...options });
    const { changes } = replan(planner, state);
    return { dirty, change: changes.get("IPv4") };
  };

  test("to the same are nothing", () => {
    expect(change({})).toEqual({ dirty: "nothing", change: undefined });
  });

  test("in the detector's CIDRs or the node-port addresses change only the node's part", () => {
    const detector = { kind: "cidrs", cidrs: ["10.145.0.0/16"] } as const;
    const { dirty, change: detectors } = change({ detectors: { IPv4: detector } });
    expect(dirty).toBe("all");
    expect(detectors?.node?.after.detector).toEqual(detector);
    const IPv6 = OPTIONS.detectors.IPv6 ?? { kind: "none" };
    expect(change({ detectors: { IPv4: detector, IPv6 } }).dirty).toBe("node");
    const nodePortAddresses = { IPv4: { kind: "list", addresses: ["10.201.0.10"] } } as const;
    const ports = change({ nodePortAddresses });
    expect(ports.dirty).toBe("node");
    expect(ports.change?.groups.size).toBe(0);
    expect(ports.change?.node).toEqual({
      before: { detector: OPTIONS.detectors.IPv4, nodePortAddresses: { kind: "all" } },
      after: { detector: OPTIONS.detectors.IPv4, nodePortAddresses: nodePortAddresses.IPv4 },
    });
  });

  test("in the ServiceCIDRs change only the node's part of their family", () => {
    const IPv4 = ["10.96.0.0/16"];
    const { dirty, change: planChange } = change({ serviceCIDRs: { IPv4 } });
    expect(dirty).toBe("node");
    expect(planChange?.groups.size).toBe(0);
    expect(planChange?.node?.before).not.toHaveProperty("serviceCIDRs");
    expect(planChange?.node?.after.serviceCIDRs).toEqual(IPv4);
    expect(change({ serviceCIDRs: { IPv6: ["fd00:10:96::/108"] } })).toEqual({ dirty: "node", change: undefined });
  });

  test("in anything else plan all services again", () => {
    const { dirty, change: planChange } = change({ nodeName: "node-b" });
    expect(dirty).toBe("all");
    expect(planChange?.groups.get(GROUP)?.after?.local).toHaveLength(1);
  });

  test("to fewer families empty the plan of the one that goes", () => {
    const { planner, plan, state } = planned({});
    planner.setOptions({ ...OPTIONS, families: ["IPv6"] });
    const step = replan(planner, state);
    expect(plan.groups.size).toBe(0);
    expect(step.changes.get("IPv4")?.groups.get(GROUP)?.after).toBeUndefined();
  });
});

describe("a step", () => {
  test("reads just what is dirty", () => {
    const { planner, state } = planned({});
    for (let i = 0; i < 50; i++) state.upsertService(service(`other-${i}`, { clusterIPs: [`10.96.1.${i}`] }));
    replan(planner, state);
    const read: string[] = [];
    const spy = {
      keys: () => state.keys(),
      slices: (key: `${string}/${string}`) => state.slices(key),
      service: (key: `${string}/${string}`) => {
        read.push(key);
        return state.service(key);
      },
    };
    state.upsertSlice(slice("web", [endpoint("10.144.2.6")]));
    const step = toEnd(planner.replan(spy, state.takeDirty().services, new Memory()));
    expect(new Set(read)).toEqual(new Set(["default/web"]));
    expect([...(step.changes.get("IPv4")?.groups.keys() ?? [])]).toEqual([GROUP]);
  });

  test("yields once for each service, and for each group that it changes", () => {
    const slices = [...new Planner(OPTIONS).replan(fiveServices(), "all", new Memory())];
    expect(slices).toHaveLength(5 + 5);
  });

  test("given up while its changes are gathered, leaves them to the next", () => {
    const [planner, state] = [new Planner(OPTIONS), fiveServices()];
    const step = planner.replan(state, "all", new Memory());
    for (let slice = 0; slice < 7; slice++) step.next();
    step.return(undefined as never);
    const { changes } = toEnd(planner.replan(state, [], new Memory()));
    expect(changes.get("IPv4")?.groups.size).toBe(5);
  });

  test("that changes nothing has no changes", () => {
    const { planner, state } = planned({});
    expect(toEnd(planner.replan(state, "all", new Memory())).changes.size).toBe(0);
    expect(toEnd(planner.replan(state, ["default/missing"], new Memory())).changes.size).toBe(0);
  });

  test("cannot begin while another is under way", () => {
    const { planner, state } = planned({});
    const first = planner.replan(state, "all", new Memory());
    first.next();
    expect(() => planner.replan(state, [], new Memory()).next()).toThrow("has begun and not ended");
    toEnd(first);
    expect(() => toEnd(planner.replan(state, [], new Memory()))).not.toThrow();
  });

  test("that is given up leaves its work to the next one", () => {
    const state = new ClusterState();
    for (let i = 0; i < 3; i++) state.upsertService(service(`s${i}`, { clusterIPs: [`10.96.1.${i}`] }));
    const planner = new Planner(OPTIONS);
    const first = planner.replan(state, state.takeDirty().services, new Memory());
    first.next();
    first.return({ changes: new Map(), memory: [], ownershipChanges: [], released: [], problems: [], notices: [] });
    const step = toEnd(planner.replan(state, [], new Memory()));
    expect(step.changes.get("IPv4")?.groups.size).toBe(3);
  });
});

function fiveServices(): ClusterState {
  const state = new ClusterState();
  for (let i = 0; i < 5; i++) state.upsertService(service(`s${i}`, { clusterIPs: [`10.96.1.${i}`] }));
  return state;
}
