import { toEnd } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ClusterState,
  type EndpointSlice,
  type ForwardingPlan,
  type HealthCheck,
  type IPFamily,
  type PlanChange,
  Planner,
  type PlannerOptions,
  type Service,
  type ServicePortGroup,
} from "../src/index.ts";
import { fakeFilter, isForeign, Memory, NO_SHORT_CUT, OPTIONS, replan } from "./objects.ts";

/** A small world in which services meet: few names, few addresses, two networks, two families. */
const names = fc.constantFrom("a", "b", "c");
const namespaces = fc.constantFrom("x", "y");
const policies = fc.constantFrom("Cluster", "Local");
const families: fc.Arbitrary<IPFamily> = fc.constantFrom("IPv4", "IPv6");

const services: fc.Arbitrary<Service> = fc.record(
  {
    namespace: namespaces,
    name: names,
    clusterIPs: fc.constantFrom(["10.96.0.1"], ["10.96.0.2"], ["10.96.0.3", "fd00::3"], ["fd00::1"]),
    ports: fc.uniqueArray(
      fc.record(
        {
          name: fc.constantFrom("", "p"),
          protocol: fc.constantFrom("TCP", "UDP"),
          port: fc.constantFrom(80, 81),
          nodePort: fc.constantFrom(30_080, 30_081),
        },
        { requiredKeys: ["name", "protocol", "port"] },
      ),
      { minLength: 1, maxLength: 2, selector: (port) => `${port.name}/${port.protocol}` },
    ),
    externalIPs: fc.subarray(["198.51.100.1", "10.96.0.1", "fd00::1"]),
    loadBalancerIPs: fc.subarray(["203.0.113.1", "198.51.100.1"]),
    loadBalancerSourceRanges: fc.subarray(["192.0.2.0/24", "10.201.0.0/16"]),
    internalTrafficPolicy: policies,
    externalTrafficPolicy: policies,
    affinitySeconds: fc.constant(10_800),
    healthCheckNodePort: fc.constant(31_000),
    annotations: fc.constant({}),
  },
  {
    requiredKeys: [
      "namespace",
      "name",
      "clusterIPs",
      "ports",
      "externalIPs",
      "loadBalancerIPs",
      "loadBalancerSourceRanges",
      "internalTrafficPolicy",
      "externalTrafficPolicy",
      "annotations",
    ],
  },
);

const ADDRESSES: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["10.144.0.1", "10.144.0.2", "10.244.0.1", "10.244.0.2"],
  IPv6: ["fd00:144::1", "fd00:244::1"],
};

const slices: fc.Arbitrary<EndpointSlice> = families.chain((family) =>
  fc.record({
    namespace: namespaces,
    name: fc.constantFrom("s1", "s2", "s3"),
    serviceName: names,
    family: fc.constant(family),
    ports: fc.subarray([
      { name: "", protocol: "TCP" as const, port: 8080 },
      { name: "p", protocol: "UDP" as const, port: 53 },
    ]),
    endpoints: fc.array(
      fc.record(
        {
          address: fc.constantFrom(...ADDRESSES[family]),
          ready: fc.boolean(),
          serving: fc.boolean(),
          terminating: fc.boolean(),
          nodeName: fc.constantFrom("node-a", "node-b"),
          zoneHints: fc.constantFrom(["z1"], ["z2"]),
        },
        { requiredKeys: ["address", "ready", "serving", "terminating"] },
      ),
      { maxLength: 3 },
    ),
  }),
);

type Change =
  | { readonly put: Service }
  | { readonly place: EndpointSlice }
  | { readonly remove: "service" | "slice"; readonly namespace: string; readonly name: string };

const changes: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ put: services }) },
  { weight: 4, arbitrary: fc.record({ place: slices }) },
  { weight: 1, arbitrary: fc.record({ remove: fc.constant("service" as const), namespace: namespaces, name: names }) },
  {
    weight: 1,
    arbitrary: fc.record({
      remove: fc.constant("slice" as const),
      namespace: namespaces,
      name: fc.constantFrom("s1", "s2", "s3"),
    }),
  },
);

/** Changes in batches; a plan is made after each batch. */
const histories = fc.array(fc.array(changes, { minLength: 1, maxLength: 6 }), { maxLength: 8 });

const settings: fc.Arbitrary<PlannerOptions> = fc
  .record({
    semantics: fc.constantFrom(OPTIONS.semantics, NO_SHORT_CUT),
    filter: fc.constantFrom(undefined, fakeFilter(), fakeFilter("cluster-ip")),
    masqueradeAll: fc.boolean(),
  })
  .map(({ filter, ...rest }) => ({ ...OPTIONS, ...rest, ...(filter === undefined ? {} : { filter }) }));

function apply(state: ClusterState, change: Change): void {
  if ("put" in change) state.upsertService(change.put);
  else if ("place" in change) state.upsertSlice(change.place);
  else if (change.remove === "service") state.deleteService(change.namespace, change.name);
  else state.deleteSlice(change.namespace, change.name);
}

class World {
  readonly state = new ClusterState();
  readonly memory = new Memory();
  readonly planner: Planner;
  readonly seen: ReadonlyMap<IPFamily, PlanChange>[] = [];
  readonly options: PlannerOptions;

  constructor(options: PlannerOptions) {
    this.options = options;
    this.planner = new Planner(options);
  }

  live(batch: readonly Change[]): void {
    for (const change of batch) apply(this.state, change);
    this.seen.push(replan(this.planner, this.state, this.memory).changes);
  }
}

function reported(planner: Planner): unknown {
  return (["IPv4", "IPv6"] as const).map((family) => ({
    ...planOf(planner.plan(family)),
    counts: countsOf(planner, family),
  }));
}

function planOf(plan: Omit<ForwardingPlan, "family" | "node">): object {
  return {
    groups: sorted(plan.groups),
    healthChecks: sorted(plan.healthChecks),
    foreign: [...plan.foreignClusterIPs].sort(),
    endpointCount: plan.endpointCount,
  };
}

function sorted<T>(map: ReadonlyMap<string, T>): readonly [string, T][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}

function countsOf(planner: Planner, family: IPFamily): unknown {
  const { services: byOwner, endpointsExcluded, noLocalEndpoints } = planner.counts(family);
  return { ...byOwner, endpointsExcluded, ...noLocalEndpoints };
}

/** The objects of a state, put into a new one in another order. */
function copyOf(state: ClusterState, order: (keys: `${string}/${string}`[]) => `${string}/${string}`[]): ClusterState {
  const copy = new ClusterState();
  for (const key of order([...state.keys()])) {
    for (const slice of [...state.slices(key)].reverse()) copy.upsertSlice(slice);
    const service = state.service(key);
    if (service !== undefined) copy.upsertService(service);
  }
  return copy;
}

function freshStart(world: World, order = (keys: `${string}/${string}`[]) => keys): Planner {
  const planner = new Planner(world.options);
  toEnd(planner.replan(copyOf(world.state, order), "all", world.memory));
  return planner;
}

function lived(options: PlannerOptions, history: readonly (readonly Change[])[]): World {
  const world = new World(options);
  for (const batch of history) world.live(batch);
  return world;
}

describe("whatever happened", () => {
  test("the plan is that of a fresh start with equal memory, in any order of objects", () => {
    fc.assert(
      fc.property(settings, histories, (options, history) => {
        const world = lived(options, history);
        expect(reported(world.planner)).toEqual(reported(freshStart(world)));
        expect(reported(world.planner)).toEqual(reported(freshStart(world, (keys) => keys.reverse())));
      }),
      { numRuns: runs(105) },
    );
  });

  test("in batches or one by one, reported twice or once: the same plan where the memory is the same", () => {
    fc.assert(
      fc.property(settings, histories, (options, history) => {
        const single = lived(
          options,
          history.flat().map((change) => [change]),
        );
        const twice = lived(
          options,
          history.flat().map((change) => [change, change]),
        );
        expect(reported(twice.planner)).toEqual(reported(single.planner));
        const squashed = lived(options, [history.flat()]);
        for (const [key, value] of single.memory.entries) squashed.memory.entries.set(key, value);
        toEnd(squashed.planner.replan(squashed.state, "all", squashed.memory));
        expect(reported(squashed.planner)).toEqual(reported(single.planner));
      }),
      { numRuns: runs(50) },
    );
  });

  test("after all is deleted nothing is left, not even in the memory", () => {
    fc.assert(
      fc.property(settings, histories, (options, history) => {
        const world = lived(options, history);
        const all = history.flat().flatMap((change): Change[] => {
          if ("put" in change) return [{ remove: "service", ...nameOf(change.put) }];
          return "place" in change ? [{ remove: "slice", ...nameOf(change.place) }] : [];
        });
        world.live(all.reverse());
        expect(reported(world.planner)).toEqual(reported(new Planner(options)));
        expect([...world.planner.ownerships()]).toEqual([]);
        expect([...world.state.keys()]).toEqual([]);
        expect(world.memory.entries.size).toBe(0);
        expect(world.planner.lookup("IPv4").atNodePort("TCP", 30_080)).toBeUndefined();
      }),
      { numRuns: runs(50) },
    );
  });

  test("the changes, replayed on an empty plan, give the plan", () => {
    fc.assert(
      fc.property(settings, histories, (options, history) => {
        const world = lived(options, history);
        for (const family of ["IPv4", "IPv6"] as const) {
          const replica = new Replica();
          for (const step of world.seen) replica.take(step.get(family));
          expect(planOf(replica)).toEqual(planOf(world.planner.plan(family)));
        }
      }),
      { numRuns: runs(50) },
    );
  });

  test("a step taken in slices while objects go on changing ends in the plan of a fresh start", () => {
    fc.assert(
      fc.property(settings, histories, fc.array(changes, { maxLength: 6 }), (options, history, meanwhile) => {
        const world = lived(options, history);
        const step = world.planner.replan(world.state, "all", world.memory);
        const late = [...meanwhile];
        let slice = step.next();
        while (!slice.done) {
          const change = late.shift();
          if (change !== undefined) apply(world.state, change);
          slice = step.next();
        }
        world.memory.take(slice.value);
        world.live(late);
        expect(reported(world.planner)).toEqual(reported(freshStart(world)));
      }),
      { numRuns: runs(50) },
    );
  });
});

describe("in every plan", () => {
  test("each frontend has one holder", () => {
    fc.assert(
      fc.property(settings, histories, (options, history) => {
        const { planner } = lived(options, history);
        for (const family of ["IPv4", "IPv6"] as const) {
          const holders = new Map<string, string>();
          for (const group of planner.plan(family).groups.values()) {
            for (const frontend of group.frontends.filter((one) => one.treatments.outside.verdict !== "leave")) {
              const key = `${group.protocol} ${frontend.address} ${frontend.port}`;
              expect(holders.get(key) ?? group.id).toBe(group.id);
              holders.set(key, group.id);
            }
          }
        }
      }),
      { numRuns: runs(50) },
    );
  });

  test("no external or load-balancer address is the ClusterIP of another service, which another network serves", () => {
    fc.assert(
      fc.property(fc.constantFrom(fakeFilter(), fakeFilter("cluster-ip")), histories, (filter, history) => {
        const { planner, state } = lived({ ...OPTIONS, filter }, history);
        for (const family of ["IPv4", "IPv6"] as const) {
          const { groups, foreignClusterIPs } = planner.plan(family);
          const taken = [...groups.values()].flatMap(({ service: key, frontends }) => {
            const own = state.service(key)?.clusterIPs ?? [];
            const others = frontends.filter(
              ({ kind, address = "" }) => kind !== "cluster-ip" && !own.includes(address),
            );
            return others.filter(({ address = "" }) => foreignClusterIPs.has(address));
          });
          expect(taken).toEqual([]);
        }
      }),
      { numRuns: runs(105) },
    );
  });

  test("nothing of the other network is proxied to through a ClusterIP", () => {
    fc.assert(
      fc.property(fc.constantFrom(fakeFilter(), fakeFilter("cluster-ip")), histories, (filter, history) => {
        const { planner } = lived({ ...OPTIONS, filter }, history);
        for (const family of ["IPv4", "IPv6"] as const) {
          for (const group of planner.plan(family).groups.values()) expectOwn(group);
        }
      }),
      { numRuns: runs(50) },
    );
  });

  test("sets are made of serving endpoints, and empty where no frontend uses them", () => {
    fc.assert(
      fc.property(settings, histories, (options, history) => {
        const { planner } = lived(options, history);
        for (const group of planner.plan("IPv4").groups.values()) {
          const treatments = group.frontends.flatMap(({ treatments: { pod, node, outside } }) => [pod, node, outside]);
          for (const set of ["cluster", "local"] as const) {
            const used = treatments.some((one) => one.verdict === "proxy" && one.set === set);
            expect(group.serving).toEqual(expect.arrayContaining([...group[set]]));
            if (!used) expect(group[set]).toEqual([]);
            else if (options.semantics.withoutEndpoints === "reject") expect(group[set]).not.toEqual([]);
          }
        }
      }),
      { numRuns: runs(50) },
    );
  });
});

function expectOwn(group: ServicePortGroup): void {
  const served = group.frontends.some((one) => one.kind === "cluster-ip" && one.treatments.outside.verdict !== "leave");
  if (served) expect(group.serving.filter((one) => isForeign(one.address))).toEqual([]);
}

function nameOf({ namespace, name }: { readonly namespace: string; readonly name: string }) {
  return { namespace, name };
}

/** A plan that knows of changes only, as a backend's kernel state does. */
class Replica {
  readonly groups = new Map<string, ServicePortGroup>();
  readonly healthChecks = new Map<`${string}/${string}`, HealthCheck>();
  readonly foreignClusterIPs = new Set<string>();

  get endpointCount(): number {
    return [...this.groups.values()].reduce((sum, group) => sum + group.endpointCount, 0);
  }

  take(change: PlanChange | undefined): void {
    for (const [id, { before, after }] of change?.groups ?? []) {
      expect(this.groups.get(id)).toEqual(before);
      if (after === undefined) this.groups.delete(id);
      else this.groups.set(id, after);
    }
    for (const [key, check] of change?.healthChecks ?? []) {
      if (check === undefined) this.healthChecks.delete(key);
      else this.healthChecks.set(key, check);
    }
    for (const ip of change?.foreignClusterIPs.removed ?? []) expect(this.foreignClusterIPs.delete(ip)).toBe(true);
    for (const ip of change?.foreignClusterIPs.added ?? []) this.foreignClusterIPs.add(ip);
  }
}
