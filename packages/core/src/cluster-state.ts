/** The objects of the cluster as they are known now, and which services a change concerns. */

import { compact, equal, equalLists } from "./data.ts";
import { type EndpointSlice, type Service, type ServiceKey, serviceKey } from "./objects.ts";

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

/** The objects that planning reads. */
export interface ClusterView {
  /** Every service that has a Service or an EndpointSlice. */
  keys(): Iterable<ServiceKey>;
  /** The Service of a key; undefined where there are only slices, or nothing. */
  service(key: ServiceKey): Service | undefined;
  /** The service's slices of both families in the byte order of their names. */
  slices(key: ServiceKey): readonly EndpointSlice[];
}

/** What changed since it was last asked. */
export interface DirtyServices {
  /** Services whose plan may differ now. */
  readonly services: ReadonlySet<ServiceKey>;
  /**
   * When what caused the changes happened (annotation endpoints.kubernetes.io/last-change-trigger-time of each changed
   * slice), in milliseconds since the epoch; for network_programming_duration_seconds.
   */
  readonly triggerTimes: ReadonlyMap<ServiceKey, readonly number[]>;
}

/**
 * Changes seen in all and not yet taken, for the metrics sync_proxy_rules_{service,endpoint}_changes_{total,pending}.
 */
export interface ChangeCounts {
  /** Since the start. */
  readonly total: number;
  /** Not yet taken. */
  readonly pending: number;
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
  if (a.weight !== b.weight || a.refused !== b.refused) return false;
  return a.family === b.family && equalLists(a.ports, b.ports) && equalLists(a.endpoints, b.endpoints);
}

/** Joined, so that the string that is kept is flat. */
function sliceId(namespace: string, name: string): string {
  return [namespace, name].join("/");
}

/** Collects what is dirty between two takes. */
class PendingChanges {
  readonly #ignoreTriggersBefore: number;
  #services = new Set<ServiceKey>();
  #triggerTimes = new Map<ServiceKey, number[]>();
  #pendingServices = new Set<ServiceKey>();
  #pendingSlices = 0;
  #seenServices = 0;
  #seenSlices = 0;

  /**
   * @param ignoreTriggersBefore milliseconds since the epoch: changes older than the proxy say nothing of its latency
   */
  constructor(ignoreTriggersBefore: number) {
    this.#ignoreTriggersBefore = ignoreTriggersBefore;
  }

  sawService(key: ServiceKey, changed: boolean): void {
    this.#seenServices++;
    if (!changed) return;
    this.#pendingServices.add(key);
    this.#services.add(key);
  }

  sawSlice(changed: boolean): void {
    this.#seenSlices++;
    if (changed) this.#pendingSlices++;
  }

  touch(key: ServiceKey): void {
    this.#services.add(key);
  }

  addTrigger(key: ServiceKey, slice: EndpointSlice): void {
    const time = slice.triggerTime;
    if (time === undefined || time <= this.#ignoreTriggersBefore) return;
    const times = this.#triggerTimes.get(key);
    if (times === undefined) this.#triggerTimes.set(key, [time]);
    else times.push(time);
  }

  /** A slice that goes carries the time of its last change, not that of its end: nothing can be measured then. */
  dropTriggers(key: ServiceKey): void {
    this.#triggerTimes.delete(key);
  }

  get any(): boolean {
    return this.#services.size > 0;
  }

  get serviceCounts(): ChangeCounts {
    return { total: this.#seenServices, pending: this.#pendingServices.size };
  }

  get endpointCounts(): ChangeCounts {
    return { total: this.#seenSlices, pending: this.#pendingSlices };
  }

  take(): DirtyServices {
    const taken = { services: this.#services, triggerTimes: this.#triggerTimes };
    this.#services = new Set();
    this.#triggerTimes = new Map();
    this.#pendingServices = new Set();
    this.#pendingSlices = 0;
    return taken;
  }
}

/** From here on slices are found by their names: most services have one, and for these a list is less to keep. */
const MANY = 32;

const NONE: readonly EndpointSlice[] = [];

/** The slices of one service. Each that comes or goes costs the same, however many there are. */
class SliceList {
  /** In the byte order of their names; undefined: to be made from the map. */
  #sorted: readonly EndpointSlice[] | undefined = NONE;
  #byName: Map<string, EndpointSlice> | undefined;

  get size(): number {
    return this.#byName?.size ?? this.#sorted?.length ?? 0;
  }

  get(name: string): EndpointSlice | undefined {
    if (this.#byName !== undefined) return this.#byName.get(name);
    return this.#sorted?.find((slice) => slice.name === name);
  }

  /** In the byte order of their names; what was given stays as it is. */
  all(): readonly EndpointSlice[] {
    this.#sorted ??= compact([...(this.#byName?.values() ?? [])].sort(byName));
    return this.#sorted;
  }

  set(slice: EndpointSlice): void {
    if (this.#byName === undefined && this.size >= MANY) {
      this.#byName = new Map(this.all().map((one) => [one.name, one]));
    }
    if (this.#byName !== undefined) {
      this.#byName.set(slice.name, slice);
      this.#sorted = undefined;
      return;
    }
    const others = this.all().filter(({ name }) => name !== slice.name);
    this.#sorted = compact([...others, slice].sort(byName));
  }

  delete(name: string): void {
    if (this.#byName === undefined) this.#sorted = compact(this.all().filter((slice) => slice.name !== name));
    else if (this.#byName.delete(name)) this.#sorted = undefined;
    if (this.#byName !== undefined && this.#byName.size < MANY / 2) {
      this.#sorted = this.all();
      this.#byName = undefined;
    }
  }
}

function byName(a: EndpointSlice, b: EndpointSlice): number {
  return a.name < b.name ? -1 : 1;
}
