import { equal, equalLists } from "../data/equal.ts";
import { type EndpointSlice, type Service, type ServiceKey, serviceKey } from "../objects.ts";
import { type ChangeCounts, type DirtyServices, PendingChanges } from "./pending.ts";
import { SliceList } from "./slice-list.ts";
import type { ClusterView } from "./view.ts";

interface Entry {
  /** The one copy of the key that is kept. */
  readonly key: ServiceKey;
  readonly service: Service | undefined;
  readonly slices: SliceList;
}

const NO_SLICES: readonly EndpointSlice[] = [];

/**
 * The Services and EndpointSlices that are known now, and which services changed since the last take. Takes single
 * changes in any order; a change that leaves an object equal does not count. Does no I/O and has no clock.
 */
export class ClusterState implements ClusterView {
  readonly #entries = new Map<ServiceKey, Entry>();
  /** Which service a slice belongs to, by `namespace/name` of the slice. */
  readonly #owners = new Map<string, ServiceKey>();
  readonly #pending: PendingChanges;

  /**
   * @param options.ignoreTriggersBefore trigger times up to this one (milliseconds since the epoch) are not kept; the
   *   agent gives its start
   */
  constructor(options: { readonly ignoreTriggersBefore?: number } = {}) {
    this.#pending = new PendingChanges(options.ignoreTriggersBefore ?? 0);
  }

  /** Returns whether anything changed. */
  upsertService(service: Service): boolean {
    const entry = this.#entryOf(service.namespace, service.name);
    const changed = !equal(entry.service, service);
    this.#pending.sawService(entry.key, changed);
    if (changed) this.#put({ key: entry.key, service, slices: entry.slices });
    return changed;
  }

  /** Removes a Service. */
  deleteService(namespace: string, name: string): boolean {
    const { key, service, slices } = this.#entryOf(namespace, name);
    const changed = service !== undefined;
    this.#pending.sawService(key, changed);
    if (changed) this.#put({ key, service: undefined, slices });
    return changed;
  }

  /** A slice that names another service than before leaves the old one. */
  upsertSlice(slice: EndpointSlice): boolean {
    const id = sliceId(slice.namespace, slice.name);
    const entry = this.#entryOf(slice.namespace, slice.serviceName);
    const { key } = entry;
    const previous = this.#owners.get(id);
    const changed = this.#place(entry, slice);
    if (changed) this.#pending.addTrigger(key, slice);
    if (previous !== undefined && previous !== key) this.#removeSlice(previous, slice.name);
    if (previous !== key) this.#owners.set(id, key);
    this.#pending.sawSlice(changed);
    return changed;
  }

  /** Removes an EndpointSlice. */
  deleteSlice(namespace: string, name: string): boolean {
    const id = sliceId(namespace, name);
    const key = this.#owners.get(id);
    this.#pending.sawSlice(key !== undefined);
    if (key === undefined) return false;
    this.#owners.delete(id);
    this.#removeSlice(key, name);
    return true;
  }

  get size(): number {
    return this.#entries.size;
  }

  keys(): IterableIterator<ServiceKey> {
    return this.#entries.keys();
  }

  /** The Service of a key; undefined where there are only slices, or nothing. */
  service(key: ServiceKey): Service | undefined {
    return this.#entries.get(key)?.service;
  }

  slices(key: ServiceKey): readonly EndpointSlice[] {
    return this.#entries.get(key)?.slices.all() ?? NO_SLICES;
  }

  /** Whether `takeDirty` has anything to give. */
  get dirty(): boolean {
    return this.#pending.any;
  }

  /** Changes of Services, for metrics. */
  get serviceChanges(): ChangeCounts {
    return this.#pending.serviceCounts;
  }

  /** Changes of EndpointSlices, for metrics. */
  get endpointChanges(): ChangeCounts {
    return this.#pending.endpointCounts;
  }

  /** What changed since the last take, which it forgets. */
  takeDirty(): DirtyServices {
    return this.#pending.take();
  }

  #entryOf(namespace: string, name: string): Entry {
    const key = serviceKey(namespace, name);
    return this.#entries.get(key) ?? { key, service: undefined, slices: new SliceList() };
  }

  #place(entry: Entry, slice: EndpointSlice): boolean {
    const old = entry.slices.get(slice.name);
    if (old !== undefined && equalSlices(old, slice)) return false;
    entry.slices.set(old === undefined ? slice : reusing(old, slice));
    this.#put(entry);
    this.#pending.touch(entry.key);
    return true;
  }

  #removeSlice(key: ServiceKey, name: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.slices.delete(name);
    this.#put(entry);
    this.#pending.touch(key);
    this.#pending.dropTriggers(key);
  }

  #put(entry: Entry): void {
    if (entry.service === undefined && entry.slices.size === 0) this.#entries.delete(entry.key);
    else this.#entries.set(entry.key, entry);
  }
}

/**
 * The slice with what is equal to the old one taken from there: of a large slice one endpoint changes, and what is
 * replaced after a long life is what costs memory and its collection.
 */
function reusing(old: EndpointSlice, slice: EndpointSlice): EndpointSlice {
  const known = new Map(old.endpoints.map((endpoint) => [endpoint.address, endpoint]));
  const endpoints = slice.endpoints.map((endpoint) => {
    const before = known.get(endpoint.address);
    return before !== undefined && equal(before, endpoint) ? before : endpoint;
  });
  const ports = equalLists(old.ports, slice.ports) ? old.ports : slice.ports;
  return { ...slice, name: old.name, ports, endpoints };
}

/** The trigger time aside: it says when, not what. */
function equalSlices(a: EndpointSlice, b: EndpointSlice): boolean {
  return a.family === b.family && equalLists(a.ports, b.ports) && equalLists(a.endpoints, b.endpoints);
}

/** Joined, so that the string that is kept is flat. */
function sliceId(namespace: string, name: string): string {
  return [namespace, name].join("/");
}
