import { createNftablesBackend, nftablesSemantics, planTable, tableName } from "@fairlead/backend-nftables";
import { toEnd } from "@fairlead/base";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeNftables } from "@fairlead/kernel/fake";
import { addressHex, type NftChain, type NftSet, type NftTable, statements } from "@fairlead/netfilter/nft";
import {
  clientA,
  NODE_A,
  PlannedCluster,
  type RawObject,
  STANDARD_OPTIONS,
  type WorkloadEndpoint,
  webA1,
  webA2,
  webB1,
  workload,
} from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { compareNftables, servicesInTable } from "../../src/index.ts";

const { mixedServices, excludedFrontends, ownershipAnnotation } = STANDARD_OPTIONS;
const filter = createEndpointFilter({ excludeCIDRs: [], mixedServices, excludedFrontends, ownershipAnnotation });
const options = { ...STANDARD_OPTIONS, excludeClusterCIDRs: [], nodePortAddresses: [`${NODE_A.addresses.IPv4}/32`] };

function newCluster() {
  return new PlannedCluster({ options, semantics: nftablesSemantics, filter });
}

function web(endpoints: readonly WorkloadEndpoint[]): readonly RawObject[] {
  const one = workload(1, { endpoints, nodePort: true, externally: "Local" });
  const two = workload(2, { endpoints: [webA1], loadBalancer: "VIP", sourceRanges: ["198.51.100.0/24"] });
  return [...one.objects, ...two.objects, ...workload(3, { endpoints: [], external: true }).objects];
}

function tableFor(objects: readonly RawObject[]): NftTable {
  const cluster = newCluster();
  cluster.advance(objects);
  return planTable(cluster.plan("IPv4"));
}

const table = tableFor(web([webA1, webA2, webB1]));

function withSet(name: string, change: (set: NftSet) => NftSet): NftTable {
  const set = table.sets.get(name);
  if (set === undefined) throw new Error(`no set ${name}`);
  return { ...table, sets: new Map(table.sets).set(name, change(set)) };
}

function withChain(name: string, change: (chain: NftChain) => Partial<NftChain>): NftTable {
  const chain = table.chains.get(name);
  if (chain === undefined) throw new Error(`no chain ${name}`);
  return { ...table, chains: new Map(table.chains).set(name, { ...chain, ...change(chain) }) };
}

/** Without the first element of which the key begins so. */
function lessOne(set: NftSet, beginning = ""): NftSet {
  const elements = new Map(set.elements);
  const key = [...elements.keys()].find((one) => one.startsWith(beginning));
  if (key === undefined) throw new Error(`nothing of ${beginning} in ${set.name}`);
  elements.delete(key);
  return { ...set, elements };
}

/** `service kind where: what` */
function found(actual: NftTable | undefined, expected = table): string[] {
  return toEnd(compareNftables(expected, actual)).map(
    ({ service = "-", kind, where, what }) => `${service} ${kind} ${where}: ${what}`,
  );
}

const WEB = addressHex("10.96.2.1");

describe("what is found", () => {
  test("nothing in the same table", () => {
    expect(found(table)).toEqual([]);
  });

  test("a table that is not there", () => {
    expect(found(undefined)).toEqual(["- missing table ip kube-proxy: the table"]);
  });

  test("a service that nothing leads to", () => {
    expect(found(withSet("service-ips", (set) => lessOne(set, WEB)))).toContain(
      "default/svc-1 missing map service-ips: 10.96.2.1 . tcp . 80 : goto endpoints-…",
    );
  });

  test("an endpoint that is gone, by the service's name", () => {
    const pool = [...table.sets.keys()].find((name) => /^endpoints-\d+$/.test(name) && hasKey(name, WEB)) ?? "";
    expect(found(withSet(pool, (set) => lessOne(set, WEB)))).toEqual([
      expect.stringMatching(/^default\/svc-1 missing endpoints of 10\.96\.2\.1 \. tcp \. 80: 10\.144\.\d\.\d \. 8080$/),
    ]);
  });

  test("services and endpoints that nobody wants", () => {
    const more = tableFor([...web([webA1, webA2, webB1]), ...workload(9, { endpoints: [webB1] }).objects]);
    expect(found(more).sort()).toEqual([
      "default/svc-9 extra endpoints of 10.96.2.9 . tcp . 80: 10.144.2.6 . 8080",
      "default/svc-9 extra map service-ips: 10.96.2.9 . tcp . 80 : goto endpoints-…",
      "default/svc-9 extra set cluster-ips: 10.96.2.9",
    ]);
  });

  test("rules that were taken away, added and moved", () => {
    const [rule] = statements.verdict({ kind: "drop" });
    const drop = { expressions: rule === undefined ? [] : [rule] };
    expect(found(withChain("services", ({ rules }) => ({ rules: rules.slice(0, -1) })))).toEqual([
      "- missing chain services: ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports",
    ]);
    expect(found(withChain("services", ({ rules }) => ({ rules: [drop, ...rules] })))).toEqual([
      "- extra chain services: drop",
    ]);
    expect(found(withChain("services", ({ rules }) => ({ rules: rules.toReversed() })))).toEqual([
      "- different chain services: its rules stand in another order",
    ]);
  });

  test("another policy, and a base chain that nobody wants", () => {
    const input = table.chains.get("filter-input")?.base;
    if (input === undefined) throw new Error("filter-input is a base chain");
    expect(found(withChain("filter-input", () => ({ base: { ...input, policy: "drop" } })))).toEqual([
      "- different chain filter-input: type filter hook input priority 0; policy drop, expected type filter hook input priority 0; policy accept",
    ]);
    const chains = new Map(table.chains).set("mine", { name: "mine", base: input, rules: [] });
    expect(found({ ...table, chains })).toEqual(["- extra chain mine: the chain"]);
    const unused = new Map(table.chains).set("mine", { name: "mine", rules: [] });
    expect(found({ ...table, chains: unused })).toEqual([]);
  });

  test("a verdict that is another one", () => {
    const drop = withSet("no-endpoint-services", (set) => ({
      ...set,
      elements: new Map(Array.from(set.elements, ([key, one]) => [key, { ...one, value: { kind: "drop" } as const }])),
    }));
    expect(found(drop)).toContain(
      "default/svc-3 different map no-endpoint-services: 10.96.2.3 . tcp . 80 : drop, expected 10.96.2.3 . tcp . 80 : goto reject-chain",
    );
  });
});

function hasKey(name: string, beginning: string): boolean {
  return [...(table.sets.get(name)?.elements.keys() ?? [])].some((key) => key.startsWith(beginning));
}

test("what a service went through before makes no difference: slots and class", async () => {
  const fake = new FakeNftables();
  const backend = createNftablesBackend(fake, { family: "IPv4" });
  const cluster = newCluster();
  const many = [webA1, webA2, webB1, clientA, NODE_A];
  const states = [many, many.slice(1), [webB1, webA2, clientA], [webB1, webA1, webA2]];
  for (const [at, endpoints] of states.entries()) {
    const change = cluster.advance(web(endpoints)).changes.get("IPv4");
    if (at === 0) await backend.sync(cluster.plan("IPv4"));
    else if (change) await backend.apply(cluster.plan("IPv4"), change);
  }
  const actual = await fake.table("ip", tableName(""));
  const expected = planTable(cluster.plan("IPv4"));
  expect(JSON.stringify([...(actual?.sets.keys() ?? [])])).not.toBe(JSON.stringify([...expected.sets.keys()]));
  expect(found(actual, expected)).toEqual([]);
});

test("the services of which something is there", () => {
  expect([...servicesInTable(table)].sort()).toEqual(["default/svc-1", "default/svc-2", "default/svc-3"]);
});

describe("services with affinity", () => {
  const sticky = (endpoints: readonly WorkloadEndpoint[]) =>
    tableFor([
      ...workload(4, { endpoints: [webA1], affinitySeconds: 600 }).objects,
      ...workload(5, { endpoints, affinitySeconds: 600, nodePort: true }).objects,
    ]);
  const wanted = sticky([webA1, webA2, webB1]);
  const without = (name: string): NftTable => {
    const set = wanted.sets.get(name);
    if (set === undefined) throw new Error(`no set ${name}`);
    return { ...wanted, sets: new Map(wanted.sets).set(name, lessOne(set)) };
  };

  test("the numbers by which clients are remembered make no difference", () => {
    const cluster = newCluster();
    const last = workload(5, { endpoints: [webA1, webA2, webB1], affinitySeconds: 600, nodePort: true }).objects;
    cluster.advance([...last, ...workload(4, { endpoints: [webA1], affinitySeconds: 600 }).objects]);
    const other = planTable(cluster.plan("IPv4"));
    expect(JSON.stringify([...(other.sets.get("sticky-ips")?.elements ?? [])])).not.toBe(
      JSON.stringify([...(wanted.sets.get("sticky-ips")?.elements ?? [])]),
    );
    expect(found(other, wanted)).toEqual([]);
  });

  test.each([
    ["sticky-slots", /sticky-slots of \S+ \. tcp \. \d+: \S+ \. \d+$/],
    ["sticky-endpoints", /sticky-endpoints of \S+ \. tcp \. \d+: \S+ \. \d+$/],
    ["sticky-ips", /sticky-endpoints of \S+ \. tcp \. \d+: \S+ \. \d+$/],
    ["sticky-nodeports", /sticky-endpoints of tcp \. \d+: \S+ \. \d+$/],
  ])("an element that is missing in %s", (name, finding) => {
    expect(found(without(name), wanted)).toContainEqual(expect.stringMatching(finding));
  });
});
