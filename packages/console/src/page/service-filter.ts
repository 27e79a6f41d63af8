import type { Ownership } from "@fairlead/core";
import type { ServiceRow } from "../protocol.ts";

export const OWNERS = { ours: "ours", mixed: "mixed", foreign: "another network's" } as const satisfies Record<
  Ownership,
  string
>;

export const STATES = {
  unready: "no ready endpoint",
  differs: "differs from the plan",
  draining: "draining",
} as const;

export const SORTS = {
  service: "namespace and name",
  name: "name",
  ready: "ready endpoints",
  endpoints: "endpoints",
  local: "local endpoints",
  draining: "draining endpoints",
  age: "age",
} as const;

export type Sort = keyof typeof SORTS;

/** Which services the list shows, and in which order; it stands in the page's address. */
export interface ServiceFilter {
  /** "" in each: any. */
  readonly q: string;
  readonly namespace: string;
  readonly owner: keyof typeof OWNERS | "";
  readonly state: keyof typeof STATES | "";
  readonly sort: Sort;
  readonly descending: boolean;
}

/** What an address says that is not known here counts as not given. */
export function filterOf(query: URLSearchParams): ServiceFilter {
  const text = (name: string) => query.get(name) ?? "";
  const sort = text("sort").replace(/^-/, "");
  return {
    q: text("q"),
    namespace: text("namespace"),
    owner: oneOf(OWNERS, text("owner")),
    state: oneOf(STATES, text("state")),
    sort: oneOf(SORTS, sort) || "service",
    descending: text("sort").startsWith("-"),
  };
}

/** The same as an address has it: what is as usual is left out. */
export function queryOf({ sort, descending, ...filter }: ServiceFilter): Readonly<Record<string, string>> {
  const order = `${descending ? "-" : ""}${sort}`;
  return { ...filter, sort: order === "service" ? "" : order };
}

/**
 * @param rows those that the text finds, in the order of their names
 * @param differing services that are not in a kernel as planned
 */
export function filtered(
  rows: readonly ServiceRow[],
  filter: ServiceFilter,
  differing: Pick<ReadonlySet<string>, "has">,
): readonly ServiceRow[] {
  const { namespace, owner, state } = filter;
  const found = rows.filter(
    (row) =>
      (namespace === "" || namespaceOf(row) === namespace) &&
      (owner === "" || Object.values(row.owners).includes(owner)) &&
      (state === "" || isIn(row, state, differing)),
  );
  return sorted(found, filter);
}

function isIn(row: ServiceRow, state: keyof typeof STATES, differing: Pick<ReadonlySet<string>, "has">): boolean {
  if (state === "unready") return row.ready === 0;
  return state === "draining" ? row.draining > 0 : differing.has(row.service);
}

/** Equal ones stay in the order of their names. */
function sorted(rows: readonly ServiceRow[], { sort, descending }: ServiceFilter): readonly ServiceRow[] {
  if (sort === "service") return descending ? rows.toReversed() : rows;
  const sign = descending ? -1 : 1;
  if (sort === "name") {
    const names = new Map(rows.map((row) => [row, nameOf(row)] as const));
    const order = (row: ServiceRow) => names.get(row) ?? "";
    return rows.toSorted((a, b) => (order(a) === order(b) ? 0 : order(a) < order(b) ? -sign : sign));
  }
  // The youngest is the one that was created last.
  const value = (row: ServiceRow) => (sort === "age" ? -(row.created ?? 0) : row[sort]);
  return rows.toSorted((a, b) => sign * (value(a) - value(b)));
}

/** Sorted, each with its number of services. */
export function namespacesOf(rows: Iterable<ServiceRow>): readonly (readonly [namespace: string, services: number])[] {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(namespaceOf(row), (counts.get(namespaceOf(row)) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Why the list is empty. */
export function emptyText(filter: ServiceFilter, services: number): string {
  if (services === 0) return "There is no service with a ClusterIP.";
  const { q, namespace, owner, state } = filter;
  const parts = [
    ...(q === "" ? [] : [`with “${q}” in its name, addresses or ports`]),
    ...(namespace === "" ? [] : [`in namespace ${namespace}`]),
    ...(owner === "" ? [] : [owner === "mixed" ? "with endpoints of two networks" : `that is ${OWNERS[owner]}`]),
    ...(state === "" ? [] : [EMPTY[state]]),
  ];
  return `There is no service ${parts.join(", ")}.`;
}

const EMPTY: Readonly<Record<keyof typeof STATES, string>> = {
  unready: "without a ready endpoint",
  differs: "that differs from the plan on a node in view",
  draining: "with a draining endpoint",
};

function namespaceOf({ service }: ServiceRow): string {
  return service.slice(0, service.indexOf("/"));
}

function nameOf({ service }: ServiceRow): string {
  return service.slice(service.indexOf("/") + 1);
}

function oneOf<T extends string>(known: Readonly<Record<T, string>>, text: string): T | "" {
  return Object.hasOwn(known, text) ? (text as T) : "";
}
