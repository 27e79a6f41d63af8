/**
 * EndpointSlices of this controller: their content, their form in the API, and placing endpoints in them with few
 * writes.
 */

import {
  IP_FAMILIES,
  type IPFamily,
  itemsOf,
  NETWORKS_MANAGER,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from "@fairlead/base";
import {
  hintNames,
  Index,
  type Key,
  namespacedName,
  Replaced,
  SERVICE_NAME_LABEL,
  SLICE_MANAGER_LABEL,
  type SlicePort,
  sliceObject,
  slicePortIn,
  versionOf,
} from "../requests.ts";
import { labelsIn, type NetworkService } from "./decode.ts";
import type { Endpoint, EndpointSet } from "./endpoints.ts";

interface SliceContent {
  readonly family: IPFamily;
  readonly labels: Readonly<Record<string, string>>;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly Endpoint[];
}

/** A slice of ours that the cluster has. */
export interface OwnSlice extends SliceContent {
  readonly namespace: string;
  readonly name: string;
  readonly serviceName: string;
  /** With which it is written: another writer's change is never overwritten unread. */
  readonly resourceVersion: string;
}

/** Labels of a Service that mean something else on a slice. */
const NOT_COPIED = new Set([SLICE_MANAGER_LABEL, SERVICE_NAME_LABEL, "service.kubernetes.io/headless"]);

/** The labels of a Service's slices: the Service's own, as upstream's controller copies them, and what they are. */
export function sliceLabels({ labels, name }: NetworkService): Readonly<Record<string, string>> {
  const copied = Object.entries(labels).filter(([key]) => !NOT_COPIED.has(key));
  const all = [...copied, [SLICE_MANAGER_LABEL, NETWORKS_MANAGER] as const, [SERVICE_NAME_LABEL, name] as const];
  return Object.fromEntries(all.sort(([one], [other]) => (one < other ? -1 : 1)));
}

export type SliceObject = ReturnType<typeof sliceObjectOf>;

/** The object that is written. */
export function sliceObjectOf(service: NetworkService, content: SliceContent, over?: OwnSlice) {
  const { namespace, name } = service;
  const named: { readonly generateName?: string; readonly name?: string; readonly resourceVersion?: string } =
    over === undefined
      ? { generateName: `${name.slice(0, 57)}-` }
      : { name: over.name, resourceVersion: over.resourceVersion };
  return sliceObject({ namespace, ...named, labels: content.labels }, service, content);
}

/**
 * Reads a discovery.k8s.io/v1 EndpointSlice. Never throws.
 *
 * @returns undefined for one that is not ours
 */
export function decodeOwnSlice(raw: unknown): OwnSlice | undefined {
  const metadata = objectAt(raw, "metadata");
  const labels = labelsIn(metadata);
  const [namespace, name] = [textAt(metadata, "namespace"), textAt(metadata, "name")];
  const family = IP_FAMILIES.find((one) => one === valueAt(raw, "addressType"));
  const serviceName = labels[SERVICE_NAME_LABEL];
  if (labels[SLICE_MANAGER_LABEL] !== NETWORKS_MANAGER || serviceName === undefined) return undefined;
  if (namespace === undefined || name === undefined || family === undefined) return undefined;
  return {
    namespace,
    name,
    serviceName,
    resourceVersion: versionOf(raw),
    family,
    labels: Object.fromEntries(Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1))),
    ports: objectsAt(raw, "ports").flatMap(slicePortIn),
    endpoints: objectsAt(raw, "endpoints").flatMap(endpointIn),
  };
}

/** The slices of ours that the cluster has, by their Service: as the watch brings them, and as they were written. */
export class OwnSlices {
  readonly #slices = new Index<Key, OwnSlice>();
  readonly #replaced = new Replaced<Key>();

  of(service: Key): readonly OwnSlice[] {
    return this.#slices.of(service);
  }

  get services(): Iterable<Key> {
    return this.#slices.all;
  }

  /**
   * What the watch brings, which is behind own writes.
   *
   * @param slice undefined: it is gone, or another controller's
   * @returns the Services concerned
   */
  observed(key: Key, slice: OwnSlice | undefined): Iterable<Key> {
    return this.#replaced.isOld(key, slice?.resourceVersion) ? [] : this.#set(key, slice);
  }

  /**
   * What the API server answered to an own write. Where the watch has brought a change in the meantime, that is later.
   *
   * @param over the version that was written over; undefined: none
   * @param slice undefined: there is none any longer
   * @returns the Services concerned
   */
  written(key: Key, over: string | undefined, slice: OwnSlice | undefined): Iterable<Key> {
    if (this.#slices.get(key)?.resourceVersion !== over) return [];
    if (slice !== undefined && over !== undefined) this.#replaced.add(key, over);
    return this.#set(key, slice);
  }

  #set(key: Key, slice: OwnSlice | undefined): Iterable<Key> {
    return this.#slices.set(key, slice, ({ namespace, serviceName }) => [namespacedName(namespace, serviceName)]);
  }
}

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

/** In the order of fields in which it is written, so that equal ones have one text. */
function endpointIn(item: Readonly<Record<string, unknown>>): readonly Endpoint[] {
  const address = itemsOf(item["addresses"])[0];
  if (typeof address !== "string") return [];
  const conditions = objectAt(item, "conditions");
  const target = objectAt(item, "targetRef");
  const [nodeName, zone] = [textAt(item, "nodeName"), textAt(item, "zone")];
  const [forZones, forNodes] = [hintNames(item, "forZones"), hintNames(item, "forNodes")];
  const hints = { ...(forZones.length > 0 && { forZones }), ...(forNodes.length > 0 && { forNodes }) };
  return [
    {
      addresses: [address],
      conditions: {
        ready: conditions["ready"] === true,
        serving: conditions["serving"] === true,
        terminating: conditions["terminating"] === true,
      },
      targetRef: {
        kind: "Pod",
        namespace: textAt(target, "namespace") ?? "",
        name: textAt(target, "name") ?? "",
        uid: textAt(target, "uid") ?? "",
      },
      ...(nodeName !== undefined && { nodeName }),
      ...(zone !== undefined && { zone }),
      ...(Object.keys(hints).length > 0 && { hints }),
    },
  ];
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
