import { compact } from "../data/compact.ts";
import type { EndpointSlice } from "../objects.ts";

/** From here on slices are found by their names: most services have one, and for these a list is less to keep. */
const MANY = 32;

const NONE: readonly EndpointSlice[] = [];

/** The slices of one service. Each that comes or goes costs the same, however many there are. */
export class SliceList {
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
