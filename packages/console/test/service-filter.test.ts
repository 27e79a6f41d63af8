import { expect, test } from "vitest";
import { emptyText, filtered, filterOf, namespacesOf, queryOf } from "../src/page/service-filter.ts";
import type { ServiceRow } from "../src/protocol.ts";

const row = (service: ServiceRow["service"], more: Partial<ServiceRow> = {}): ServiceRow => ({
  service,
  owners: { IPv4: "ours" },
  frontends: [],
  endpoints: 2,
  ready: 1,
  local: 0,
  draining: 0,
  ...more,
});

/** In the order of their names, as the list has them. */
const ROWS: readonly ServiceRow[] = [
  row("bank/web", { ready: 0, created: 3_000 }),
  row("shop/api", { endpoints: 9, ready: 8, draining: 1, created: 1_000 }),
  row("shop/db", { owners: { IPv4: "foreign", IPv6: "mixed" }, ready: 0, created: 2_000 }),
  row("shop/web", { owners: { IPv4: "mixed" }, local: 1 }),
];

const shown = (query: string, differing = new Set<string>()) =>
  filtered(ROWS, filterOf(new URLSearchParams(query)), differing).map(({ service }) => service);

test.each([
  ["", ["bank/web", "shop/api", "shop/db", "shop/web"]],
  ["namespace=shop", ["shop/api", "shop/db", "shop/web"]],
  ["namespace=sho", []],
  ["owner=foreign", ["shop/db"]],
  ["owner=mixed", ["shop/db", "shop/web"]],
  ["state=unready", ["bank/web", "shop/db"]],
  ["state=unready&owner=ours", ["bank/web"]],
  ["state=draining", ["shop/api"]],
  ["state=differs", ["shop/web"]],
  ["owner=nonsense&state=%3Cb%3E&sort=size", ["bank/web", "shop/api", "shop/db", "shop/web"]],
])("%s shows %j", (query, services) => {
  expect(shown(query, new Set(["shop/web"]))).toEqual(services);
});

test.each([
  ["-service", ["shop/web", "shop/db", "shop/api", "bank/web"]],
  ["name", ["shop/api", "shop/db", "bank/web", "shop/web"]],
  ["-name", ["bank/web", "shop/web", "shop/db", "shop/api"]],
  ["ready", ["bank/web", "shop/db", "shop/web", "shop/api"]],
  ["-endpoints", ["shop/api", "bank/web", "shop/db", "shop/web"]],
  ["-local", ["shop/web", "bank/web", "shop/api", "shop/db"]],
  ["-draining", ["shop/api", "bank/web", "shop/db", "shop/web"]],
  // The youngest first; whose age is unknown comes as the oldest.
  ["age", ["bank/web", "shop/db", "shop/api", "shop/web"]],
])("sort=%s: %j", (sort, services) => {
  expect(shown(`sort=${sort}`)).toEqual(services);
});

test("an address says it all, and nothing that is as usual", () => {
  const given = { q: "10.0.0.1", namespace: "shop", owner: "mixed", state: "unready", sort: "-ready" };
  expect(queryOf(filterOf(new URLSearchParams(given)))).toEqual(given);
  expect(Object.values(queryOf(filterOf(new URLSearchParams()))).join("")).toBe("");
});

test("namespaces come with their numbers of services", () => {
  expect(namespacesOf(ROWS)).toEqual([
    ["bank", 1],
    ["shop", 3],
  ]);
});

test.each([
  ["", 0, "There is no service with a ClusterIP."],
  ["q=x&namespace=shop", 4, "There is no service with “x” in its name, addresses or ports, in namespace shop."],
  ["owner=foreign&state=unready", 4, "There is no service that is another network's, without a ready endpoint."],
  ["owner=mixed", 4, "There is no service with endpoints of two networks."],
])("an empty list of %s among %i says why", (query, services, text) => {
  expect(emptyText(filterOf(new URLSearchParams(query)), services)).toBe(text);
});
