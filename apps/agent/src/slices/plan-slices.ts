import type { Endpoint, EndpointSet } from "./endpoints.ts";
import type { OwnSlice, SliceContent } from "./slice.ts";

/** The writes that make a Service's slices what they are to be. */
export interface SliceWrites {
  readonly create: readonly SliceContent[];
  readonly update: readonly { readonly over: OwnSlice; readonly content: SliceContent }[];
  readonly remove: readonly OwnSlice[];
}

/**
 * Places endpoints in slices with few writes: an endpoint stays in the slice that it is in, a new one goes into a slice
 * that is written anyway, then into the fullest with room, then into a new one. A change of one pod is one write.
 *
 * @param own slices of the Service that the cluster has
 * @param most endpoints of a slice, 1 to 1,000
 */
export function planSlices(
  sets: readonly EndpointSet[],
  labels: SliceContent["labels"],
  own: readonly OwnSlice[],
  most: number,
): SliceWrites {
  const left = new Map(own.map((slice) => [slice.name, slice]));
  const create: SliceContent[] = [];
  const drafts: Draft[] = [];
  for (const set of sets) {
    const mine = own.filter((slice) => groupKey(slice) === groupKey(set));
    for (const { name } of mine) left.delete(name);
    const placed = place(set, mine, most);
    drafts.push(...placed.drafts);
    create.push(...placed.rest.map((endpoints) => ({ family: set.family, labels, ports: set.ports, endpoints })));
  }
  const used = drafts.filter(({ endpoints }) => endpoints.length > 0);
  const update = used.flatMap(({ over, endpoints }) => {
    const content = { family: over.family, labels, ports: over.ports, endpoints };
    return contentText(content) === contentText(over) ? [] : [{ over, content }];
  });
  const emptied = drafts.filter(({ endpoints }) => endpoints.length === 0).map(({ over }) => over);
  return { create, update, remove: [...emptied, ...left.values()] };
}

interface Draft {
  readonly over: OwnSlice;
  readonly endpoints: Endpoint[];
  changed: boolean;
}

function place({ endpoints }: EndpointSet, own: readonly OwnSlice[], most: number) {
  const wanted = new Map(endpoints.map((endpoint) => [identity(endpoint), endpoint]));
  const drafts = own.map((over) => keep(over, wanted, most));
  const waiting = [...wanted.values()];
  // Slices that are written anyway come first, then the fullest: few slices, few writes.
  const open = [...drafts].sort(
    (a, b) => Number(b.changed) - Number(a.changed) || b.endpoints.length - a.endpoints.length,
  );
  for (const draft of open) {
    // One that loses its last endpoint takes new ones as well: it is written either way.
    const taken = waiting.splice(0, Math.max(0, most - draft.endpoints.length));
    draft.endpoints.push(...taken);
  }
  const rest: Endpoint[][] = [];
  while (waiting.length > 0) rest.push(waiting.splice(0, most));
  return { drafts, rest };
}

/** What of a slice is still wanted, as it is now; it is no longer waiting for a place. */
function keep(over: OwnSlice, wanted: Map<string, Endpoint>, most: number): Draft {
  const kept: Endpoint[] = [];
  for (const old of over.endpoints) {
    const now = wanted.get(identity(old));
    if (now === undefined || kept.length === most) continue;
    wanted.delete(identity(old));
    kept.push(now);
  }
  return { over, endpoints: kept, changed: JSON.stringify(kept) !== JSON.stringify(over.endpoints) };
}

function identity({ addresses: [address], targetRef: { uid, name } }: Endpoint): string {
  return `${address} ${uid || name}`;
}

function groupKey({ family, ports }: Pick<SliceContent, "family" | "ports">): string {
  return `${family} ${JSON.stringify(ports)}`;
}

function contentText({ labels, endpoints }: SliceContent): string {
  return JSON.stringify([labels, endpoints]);
}
