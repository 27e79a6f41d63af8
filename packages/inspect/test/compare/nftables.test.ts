import { createNftablesBackend, nftablesSemantics, planTable, tableName } from "@fairlead/backend-nftables";
import { toEnd } from "@fairlead/base";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeNftables } from "@fairlead/kernel/fake";
import { type NftTable, readTables, tableText } from "@fairlead/netfilter/nft";
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

/** The same with something else in its text; what follows a name is of that chain, set or map. */
function changed(from: RegExp | string, to: string, listing = tableText(table)): NftTable {
  const text = listing.replace(from, to);
  expect(text).not.toBe(listing);
  const [made] = readTables(text);
  if (made === undefined) throw new Error("the damaged table is none");
  return made;
}

/** `service kind where: what` */
function found(actual: NftTable | undefined, expected = table): string[] {
  return toEnd(compareNftables(expected, actual)).map(
    ({ service = "-", kind, where, what }) => `${service} ${kind} ${where}: ${what}`,
  );
}

describe("what is found", () => {
  test("nothing in the same table", () => {
    expect(found(table)).toEqual([]);
    expect(found(readTables(tableText(table))[0])).toEqual([]);
  });

  test("a table that is not there", () => {
    expect(found(undefined)).toEqual(["- missing table ip kube-proxy: the table"]);
  });

  test("a table that is dormant", () => {
    expect(found({ ...table, dormant: true })).toEqual([
      "- different table ip kube-proxy: dormant: its rules are not in effect",
    ]);
  });

  test("a flowtable of another priority", () => {
    const having = (priority: number) => ({
      ...table,
      flowtables: new Map([["ft", { name: "ft", priority, devices: [] }]]),
    });
    expect(found(having(10), having(0))).toEqual(["- different flowtable ft: priority 10, expected 0"]);
    expect(found(having(0), having(0))).toEqual([]);
  });

  test("a service that nothing leads to", () => {
    expect(found(changed(/10\.96\.2\.1 \. tcp \. 80 (?:comment "[^"]*" )?: goto endpoints-\d+,\s*/, ""))).toContain(
      "default/svc-1 missing map service-ips: 10.96.2.1 . tcp . 80 : goto endpoints-…",
    );
  });

  test("an endpoint that is gone, by the service's name", () => {
    expect(found(changed(/10\.96\.2\.1 \. tcp \. 80 \. 0 : \S+ \. \d+,\s*/, ""))).toEqual([
      expect.stringMatching(/^default\/svc-1 missing endpoints of 10\.96\.2\.1 \. tcp \. 80: 10\.144\.\d\.\d \. 8080$/),
    ]);
  });

  test("services and endpoints that are not in the plan", () => {
    const more = tableFor([...web([webA1, webA2, webB1]), ...workload(9, { endpoints: [webB1] }).objects]);
    expect(found(more).sort()).toEqual([
      "default/svc-9 extra endpoints of 10.96.2.9 . tcp . 80: 10.144.2.6 . 8080",
      "default/svc-9 extra map service-ips: 10.96.2.9 . tcp . 80 : goto endpoints-…",
      "default/svc-9 extra set cluster-ips: 10.96.2.9",
    ]);
  });

  test("rules that were taken away, added and moved", () => {
    const last = "ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports";
    expect(found(changed(`\t\t${last}\n`, ""))).toEqual([`- missing chain services: ${last}`]);
    expect(found(changed("chain services {\n", "$&\t\tdrop\n"))).toEqual(["- extra chain services: drop"]);
    expect(found(changed(/(chain services \{\n)(.*\n)(.*\n)/, "$1$3$2"))).toEqual([
      "- different chain services: its rules stand in another order",
    ]);
  });

  test("another policy, and a base chain that is not in the plan", () => {
    expect(found(changed(/(chain filter-input \{\n.*policy )accept/, "$1drop"))).toEqual([
      "- different chain filter-input: type filter hook input priority 0; policy drop, expected type filter hook input priority 0; policy accept",
    ]);
    const mine = (base: string) => changed(/\}\n$/, `\tchain mine {\n${base}\t}\n}\n`);
    const extra = mine("\t\ttype filter hook input priority 0; policy accept;\n");
    expect(found(extra)).toEqual(["- extra chain mine: the chain"]);
    expect(found(mine(""))).toEqual([]);
  });

  test("a verdict that is another one", () => {
    expect(found(changed(/(10\.96\.2\.3 \. tcp \. 80 (?:comment "[^"]*" )?: )goto reject-chain/, "$1drop"))).toContain(
      "default/svc-3 different map no-endpoint-services: 10.96.2.3 . tcp . 80 : drop, expected 10.96.2.3 . tcp . 80 : goto reject-chain",
    );
  });
});

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
  const without = (name: string) =>
    changed(new RegExp(`(map ${name} \\{[^}]*?elements = \\{ )[^,}]*(?:, |,\\s*|(?= \\}))`), "$1", tableText(wanted));

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
