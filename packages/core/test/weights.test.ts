import { toEnd } from "@fairlead/base";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ClusterState,
  decodeEndpointSlice,
  type EndpointSlice,
  endpointFates,
  type ModeSemantics,
  Planner,
  type ServicePortGroup,
} from "../src/index.ts";
import { countLocalReady } from "../src/select/local-ready.ts";
import { DRAINING, endpoint, HERE, OPTIONS, replan, service, slice } from "./objects.ts";

const WEIGHT = "fairlead.dev/weight";
const REFUSED = "fairlead.dev/weight-refused";
const WEIGHS: ModeSemantics = { ...OPTIONS.semantics, weights: "and refusals" };
const HTTP = { family: "IPv4", name: "", protocol: "TCP" } as const;

describe("the annotations of an EndpointSlice", () => {
  const decoded = (annotations: object, addresses: readonly string[] = []) => {
    const { object, problems } = decodeEndpointSlice({
      metadata: { namespace: "x", name: "web-1", labels: { "kubernetes.io/service-name": "web" }, annotations },
      addressType: "IPv4",
      ports: [{ name: "", port: 8080 }],
      endpoints: addresses.map((address) => ({ addresses: [address] })),
    });
    return { weight: object?.weight, refused: object?.refused, problems: problems.map(({ reason }) => reason) };
  };

  test.each([
    [{}, {}],
    [{ [WEIGHT]: "0" }, { weight: 0 }],
    [{ [WEIGHT]: "1000000" }, { weight: 1_000_000 }],
    [
      { [WEIGHT]: "3", [REFUSED]: "true" },
      { weight: 3, refused: true },
    ],
    [{ [WEIGHT]: "3", [REFUSED]: "false" }, { weight: 3 }],
  ])("%j", (annotations, wanted) => {
    const { problems, ...found } = decoded(annotations);
    expect(problems).toEqual([]);
    expect(found).toEqual({ weight: undefined, refused: undefined, ...wanted });
  });

  test.each(["", "-1", "1.5", "1000001", "1e3", "half", "9".repeat(400), 7])(
    "the weight %j is as without it",
    (value) => {
      expect(decoded({ [WEIGHT]: value })).toEqual({
        weight: undefined,
        refused: undefined,
        problems: [`${WEIGHT} must be a whole number from 0 to 1000000; each endpoint of this slice weighs 1`],
      });
    },
  );

  test("nothing is refused by another value, without a weight, or with endpoints", () => {
    expect(decoded({ [WEIGHT]: "1", [REFUSED]: "yes" })).toMatchObject({
      weight: 1,
      refused: undefined,
      problems: [`${REFUSED} must be true or false; using false`],
    });
    expect(decoded({ [REFUSED]: "true" })).toMatchObject({ refused: undefined, problems: [expect.any(String)] });
    expect(decoded({ [WEIGHT]: "1", [REFUSED]: "true" }, ["10.0.0.1"])).toMatchObject({
      weight: 1,
      refused: undefined,
      problems: [`${REFUSED} is for a slice without endpoints; nothing is refused`],
    });
  });
});

const [A, B, C, D] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"] as const;

function share(name: string, weight: number | undefined, endpoints: EndpointSlice["endpoints"], more = {}) {
  return slice("web", endpoints, { name, ...(weight !== undefined && { weight }), ...more });
}

function planned(slices: readonly EndpointSlice[], semantics = WEIGHS, fields = {}) {
  const state = new ClusterState();
  const planner = new Planner({ ...OPTIONS, semantics });
  state.upsertService(service("web", fields));
  for (const one of slices) state.upsertSlice(one);
  const { problems } = replan(planner, state);
  const [group] = planner.plan("IPv4").groups.values();
  return { state, planner, group, problems: problems.map(({ reason }) => reason) };
}

function clusterWeights({ group }: { readonly group: ServicePortGroup | undefined }) {
  const { endpoints = [], refused } = group?.weights?.cluster ?? {};
  const of = Object.fromEntries(group?.cluster.map(({ address }, at) => [address, endpoints[at]]) ?? []);
  return refused === undefined ? of : { ...of, refused };
}

describe("a plan with weights", () => {
  test("there is none where endpoints weigh alike", () => {
    const alike = [share("a", 50, [endpoint(A), endpoint(B)]), share("b", 25, [endpoint(C)])];
    const plain = [share("a", undefined, [endpoint(A), endpoint(B)]), share("b", undefined, [endpoint(C)])];
    expect(planned(alike).group).toEqual(planned(plain).group);
    expect(planned(alike).group).not.toHaveProperty("weights");
  });

  test("what no endpoint can take goes to the others", () => {
    const slices = [
      share("a", 90, [endpoint(A, DRAINING)]),
      share("b", 9, [endpoint(B)]),
      share("c", 1, [endpoint(C)]),
    ];
    expect(clusterWeights(planned(slices))).toEqual({ [B]: 9, [C]: 1 });
  });

  test("a share that is refused goes to no other", () => {
    const slices = [share("a", 3, [endpoint(A)]), share("b", 1, [], { refused: true })];
    expect(clusterWeights(planned(slices))).toEqual({ [A]: 3, refused: 1 });
    expect(planned([share("b", 1, [], { refused: true })]).group?.frontends[0]?.treatments.pod).toEqual({
      verdict: "reject",
    });
  });

  test("a share of another port refuses nothing", () => {
    const ports = [{ name: "other", protocol: "TCP", port: 1 }] as const;
    const slices = [share("a", 3, [endpoint(A)]), share("b", 1, [], { refused: true, ports })];
    expect(planned(slices).group).not.toHaveProperty("weights");
  });

  test("an endpoint of two slices has a part of each", () => {
    const slices = [share("a", 2, [endpoint(A), endpoint(B)]), share("b", 4, [endpoint(A)])];
    expect(clusterWeights(planned(slices))).toEqual({ [A]: 5, [B]: 1 });
    const moved = [share("a", 2, [endpoint(A, DRAINING), endpoint(B)]), share("b", 4, [endpoint(A)])];
    expect(clusterWeights(planned(moved))).toEqual({ [A]: 2, [B]: 1 });
  });

  test("the local set is divided by itself", () => {
    const slices = [share("a", 1, [endpoint(A, HERE), endpoint(B)]), share("b", 1, [endpoint(C, HERE)])];
    const { group } = planned(slices, WEIGHS, { externalIPs: ["192.0.2.1"], externalTrafficPolicy: "Local" });
    expect(group?.weights).toEqual({ cluster: { endpoints: [1, 1, 2] } });
    expect(group?.local).toHaveLength(2);
  });

  test("more than 65,536 parts are rounded, and none is nothing", () => {
    const slices = [share("a", 1_000_000, [endpoint(A)]), share("b", 1, [endpoint(B), endpoint(C), endpoint(D)])];
    expect(clusterWeights(planned(slices))).toEqual({ [A]: 65_536, [B]: 1, [C]: 1, [D]: 1 });
  });

  test("a change of nothing but a weight is a change", () => {
    const { state, planner } = planned([share("a", 1, [endpoint(A)]), share("b", 1, [endpoint(B)])]);
    state.upsertSlice(share("b", 2, [endpoint(B)]));
    expect(replan(planner, state).changes.get("IPv4")?.groups.size).toBe(1);
  });
});

describe("weight 0", () => {
  const slices = [share("a", 1, [endpoint(A)]), share("b", 0, [endpoint(B, HERE)])];

  test.each([WEIGHS, OPTIONS.semantics])("gets nothing, in any mode, and may end its conversations", (semantics) => {
    const { group } = planned(slices, semantics);
    expect(group?.cluster.map(({ address }) => address)).toEqual([A]);
    expect(group?.serving.map(({ address }) => address)).toEqual([A, B]);
    expect(group).not.toHaveProperty("weights");
  });

  test("of all refuses all", () => {
    const { group } = planned([share("b", 0, [endpoint(B)])]);
    expect(group?.frontends[0]?.treatments.pod).toEqual({ verdict: "reject" });
  });

  test("is nothing that a load balancer should send connections for", () => {
    expect(toEnd(countLocalReady(slices, "IPv4", "node-a", undefined))).toBe(0);
  });

  test("steps back behind the same address elsewhere, whichever is ready", () => {
    const { group } = planned([share("a", 0, [endpoint(A)]), share("b", 1, [endpoint(A, DRAINING)])]);
    expect(group?.cluster.map(({ address }) => address)).toEqual([A]);
  });
});

test("a mode that cannot weigh or refuse says so once", () => {
  const slices = [share("a", 3, [endpoint(A)]), share("b", 1, [], { refused: true })];
  const cannotWeigh = "fairlead.dev/weight: this mode cannot weigh endpoints; they weigh alike";
  expect(planned(slices, OPTIONS.semantics).problems).toEqual([cannotWeigh]);
  const { state, planner, group, problems } = planned(slices, { ...WEIGHS, weights: "without refusals" });
  expect(problems).toEqual([
    "fairlead.dev/weight-refused: this mode cannot refuse a share; the other endpoints get it",
  ]);
  expect(group).not.toHaveProperty("weights");
  state.upsertSlice(share("a", 4, [endpoint(A)]));
  expect(replan(planner, state).problems).toEqual([]);
});

test("fates say what an endpoint gets, or that its slice weighs 0", () => {
  const slices = [share("a", 90, [endpoint(A)]), share("b", 10, [endpoint(B)]), share("c", 0, [endpoint(C)])];
  const fates = endpointFates(slices, HTTP, { nodeName: "node-a", weights: "and refusals" });
  expect(fates.map(({ cluster }) => cluster)).toEqual([
    { in: true, why: "ready; 90 % of new connections", share: 0.9 },
    { in: true, why: "ready; 10 % of new connections", share: 0.1 },
    { in: false, why: "its EndpointSlice has weight 0" },
  ]);
});

describe("any weights", () => {
  const weights = fc.option(fc.oneof(fc.nat(3), fc.nat(1_000_000)), { nil: undefined });
  const slices = fc
    .array(fc.record({ weight: weights, members: fc.subarray([A, B, C, D]), refused: fc.boolean() }), { maxLength: 5 })
    .map((list) =>
      list.map(({ weight, members, refused }, at) =>
        refused && weight !== undefined
          ? share(`s${at}`, weight, [], { refused: true })
          : share(
              `s${at}`,
              weight,
              members.map((address) => endpoint(address, address === A ? HERE : {})),
            ),
      ),
    );

  /** As exact numbers, of all and of what is refused. */
  function wantedShares(list: readonly EndpointSlice[], members: readonly string[]) {
    const shares = new Map(members.map((address) => [address, 0]));
    const plain = new Set<string>();
    for (const { weight, endpoints } of list) {
      const usable = endpoints.filter(({ address }) => shares.has(address));
      if (weight === undefined) for (const { address } of usable) plain.add(address);
      else for (const { address } of usable) shares.set(address, (shares.get(address) ?? 0) + weight / usable.length);
    }
    for (const address of plain) shares.set(address, (shares.get(address) ?? 0) + 1);
    const refused = list.reduce((sum, one) => sum + (one.refused ? (one.weight ?? 0) : 0), 0);
    return { shares, total: [...shares.values()].reduce((sum, one) => sum + one, refused) };
  }

  test("give each endpoint its part of each of its slices", () => {
    fc.assert(
      fc.property(slices, (list) => {
        const { group } = planned(list);
        const members = group?.cluster.map(({ address }) => address) ?? [];
        const { shares, total } = wantedShares(list, members);
        const { endpoints = members.map(() => 1), refused = 0 } = group?.weights?.cluster ?? {};
        const sum = endpoints.reduce((all, one) => all + one, refused);
        expect(endpoints.every((one) => Number.isInteger(one) && one > 0)).toBe(true);
        for (const [at, address] of members.entries())
          expect(Math.abs((endpoints[at] ?? 0) / sum - (shares.get(address) ?? 0) / total)).toBeLessThan(1e-4);
      }),
      { numRuns: runs(300) },
    );
  });

  test("are in the plan alike, whether slice by slice or at once", () => {
    fc.assert(
      fc.property(slices, slices, (before, after) => {
        const { state, planner } = planned(before);
        for (const { name } of before) state.deleteSlice("default", name);
        replan(planner, state);
        for (const one of after) {
          state.upsertSlice(one);
          replan(planner, state);
        }
        expect(planner.plan("IPv4").groups).toEqual(planned(after).planner.plan("IPv4").groups);
      }),
      { numRuns: runs(100) },
    );
  });
});
