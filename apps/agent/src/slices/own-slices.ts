import { type Key, namespacedName } from "./key.ts";
import type { OwnSlice } from "./slice.ts";

/** The slices of ours that the cluster has, by their Service: as the watch brings them, and as they were written. */
export class OwnSlices {
  readonly #byService = new Map<Key, Map<Key, OwnSlice>>();
  readonly #serviceOf = new Map<Key, Key>();
  /** Versions that own writes have replaced, by slice, until the watch has brought a later one. */
  readonly #replaced = new Map<Key, Set<string>>();

  of(service: Key): readonly OwnSlice[] {
    return [...(this.#byService.get(service)?.values() ?? [])];
  }

  /** Those that have slices. */
  get services(): Iterable<Key> {
    return this.#byService.keys();
  }

  /**
   * What the watch brings. It is behind own writes: a version that they have replaced is not put in place of theirs, or
   * the next write would be over a version that is gone.
   *
   * @param slice undefined: it is gone, or another controller's
   * @returns the Services concerned
   */
  observed(key: Key, slice: OwnSlice | undefined): readonly Key[] {
    if (slice !== undefined && this.#replaced.get(key)?.has(slice.resourceVersion) === true) return [];
    this.#replaced.delete(key);
    return this.#set(key, slice);
  }

  /**
   * What the API server answered to an own write. Where the watch has brought a change in the meantime, that is later.
   *
   * @param over the version that was written over; undefined: none
   * @param slice undefined: there is none any longer
   * @returns the Services concerned
   */
  written(key: Key, over: string | undefined, slice: OwnSlice | undefined): readonly Key[] {
    if (this.#find(key)?.resourceVersion !== over) return [];
    if (slice === undefined) this.#replaced.delete(key);
    else if (over !== undefined) this.#replaced.set(key, (this.#replaced.get(key) ?? new Set<string>()).add(over));
    return this.#set(key, slice);
  }

  #find(key: Key): OwnSlice | undefined {
    const service = this.#serviceOf.get(key);
    return service === undefined ? undefined : this.#byService.get(service)?.get(key);
  }

  #set(key: Key, slice: OwnSlice | undefined): readonly Key[] {
    const before = this.#serviceOf.get(key);
    if (before !== undefined) this.#remove(key, before);
    if (slice === undefined) return before === undefined ? [] : [before];
    const service = namespacedName(slice.namespace, slice.serviceName);
    const slices = this.#byService.get(service) ?? new Map<Key, OwnSlice>();
    this.#byService.set(service, slices.set(key, slice));
    this.#serviceOf.set(key, service);
    return before === undefined || before === service ? [service] : [before, service];
  }

  #remove(key: Key, service: Key): void {
    this.#serviceOf.delete(key);
    const slices = this.#byService.get(service);
    slices?.delete(key);
    if (slices?.size === 0) this.#byService.delete(service);
  }
}
