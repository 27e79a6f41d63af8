import type { EndpointSetName, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { sizeFor } from "./classes.ts";
import { maglevSize, maglevTable } from "./maglev.ts";
import { type Memory, memoryOf, type Numbers } from "./memory.ts";
import { denseSlots } from "./slots.ts";

/** Where the endpoints of one set of a service port stand: in which class, and in which slots. */
export interface Pool {
  readonly size: number;
  /** Without a hole; the plan's own list, until endpoints come and go. */
  readonly slots: readonly PlanEndpoint[];
  /** The slots are a table into which a hash of the client's address leads; each endpoint has many. */
  readonly hashed?: true;
}

/** What is remembered of a group that is in the kernel. */
export interface Placement {
  readonly group: ServicePortGroup;
  readonly cluster?: Pool;
  readonly local?: Pool;
  /** Of a group with affinity that has endpoints. */
  readonly memory?: Memory;
}

/** What is known of where endpoints stood. */
export type PlacedBefore = Partial<Pick<Placement, EndpointSetName | "memory">>;

/** Gives the endpoints of a group their places; those that stay keep theirs. */
export function place(group: ServicePortGroup, before: PlacedBefore | undefined, numbers: Numbers): Placement {
  const cluster = placeSet(group, "cluster", before?.cluster);
  const local = placeSet(group, "local", before?.local);
  const placed = { group, ...(cluster && { cluster }), ...(local && { local }) };
  if (group.affinitySeconds === undefined || (cluster === undefined && local === undefined)) return placed;
  const endpoints = [...(cluster?.slots ?? []), ...(local?.slots ?? [])];
  return { ...placed, memory: memoryOf(endpoints, before?.memory, numbers) };
}

function placeSet(group: ServicePortGroup, set: EndpointSetName, before: Pool | undefined): Pool | undefined {
  const endpoints = group[set];
  if (endpoints.length === 0 || !isUsed(group, set)) return undefined;
  if (group.balance === "source-hash" && group.affinitySeconds === undefined) return placeByHash(endpoints);
  return placeByDraw(endpoints, before?.hashed ? undefined : before);
}

function placeByHash(endpoints: readonly PlanEndpoint[]): Pool {
  const size = maglevSize(endpoints.length);
  return { size, slots: maglevTable(endpoints, size), hashed: true };
}

function placeByDraw(endpoints: readonly PlanEndpoint[], before: Pool | undefined): Pool {
  return { size: sizeFor(endpoints.length, before?.size), slots: denseSlots(before?.slots ?? [], endpoints) };
}

function isUsed({ frontends }: ServicePortGroup, set: EndpointSetName): boolean {
  return frontends.some(({ treatments: { pod, node, outside } }) =>
    [pod, node, outside].some((treatment) => treatment.verdict === "proxy" && treatment.set === set),
  );
}
