import type { EndpointSetName, PlanEndpoint, ServicePortGroup } from "@fairlead/core";
import { sizeFor } from "./classes.ts";
import { maglevSize, maglevTable } from "./maglev.ts";
import { denseSlots, type Slots, stableSlots } from "./slots.ts";

/** Where the endpoints of one set of a service port stand: in which class, and in which slots. */
export interface Pool {
  readonly size: number;
  /** Without a hole; the plan's own list, until endpoints come and go. */
  readonly slots: readonly PlanEndpoint[];
  /** Where clients are remembered. */
  readonly sticky?: StickyPool;
  /** The slots are a table into which a hash of the client's address leads; each endpoint has many. */
  readonly hashed?: true;
}

interface StickyPool {
  /** Seconds. */
  readonly timeout: number;
  /** Each keeps its own as long as it stays; no more than the class has. */
  readonly slots: Slots;
}

/** What is remembered of a group that is in the kernel. */
export interface Placement {
  readonly group: ServicePortGroup;
  readonly cluster?: Pool;
  readonly local?: Pool;
}

/** What is known of where endpoints stood. */
export type PlacedBefore = Readonly<Partial<Record<EndpointSetName, Partial<Pool>>>>;

/** Gives the endpoints of a group their places; those that stay keep theirs. */
export function place(group: ServicePortGroup, before?: PlacedBefore): Placement {
  const cluster = placeSet(group, "cluster", before?.cluster);
  const local = placeSet(group, "local", before?.local);
  return { group, ...(cluster && { cluster }), ...(local && { local }) };
}

function placeSet(group: ServicePortGroup, set: EndpointSetName, before: Partial<Pool> | undefined): Pool | undefined {
  const endpoints = group[set];
  if (endpoints.length === 0 || !isUsed(group, set)) return undefined;
  const timeout = group.affinitySeconds;
  if (group.balance === "source-hash" && timeout === undefined) return placeByHash(endpoints);
  return placeByDraw(endpoints, timeout, before?.hashed ? undefined : before);
}

function placeByHash(endpoints: readonly PlanEndpoint[]): Pool {
  const size = maglevSize(endpoints.length);
  return { size, slots: maglevTable(endpoints, size), hashed: true };
}

function placeByDraw(
  endpoints: readonly PlanEndpoint[],
  timeout: number | undefined,
  before: Partial<Pool> | undefined,
): Pool {
  const size = sizeFor(endpoints.length, before?.size);
  const slots = denseSlots(before?.slots ?? [], endpoints);
  if (timeout === undefined) return { size, slots };
  return { size, slots, sticky: { timeout, slots: stickySlots(before?.sticky?.slots ?? [], endpoints, size) } };
}

/** Those beyond the end of a class that became smaller have to move: their clients are not remembered any more. */
function stickySlots(before: Slots, endpoints: readonly PlanEndpoint[], size: number): Slots {
  return stableSlots(before.slice(0, size), endpoints);
}

function isUsed({ frontends }: ServicePortGroup, set: EndpointSetName): boolean {
  return frontends.some(({ treatments: { pod, node, outside } }) =>
    [pod, node, outside].some((treatment) => treatment.verdict === "proxy" && treatment.set === set),
  );
}
