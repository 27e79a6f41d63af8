import { checkCIDR } from "@fairlead/endpoint-filter";
import type { NetworkSource } from "../sources/source.ts";

/**
 * What is known of one resource of a source. `waiting`: no complete list yet; `absent`: the server has no such
 * resource; `forbidden`: it may not be read; `unreachable`: it was listed and cannot be followed now.
 */
export type ResourceState = "waiting" | "listed" | "absent" | "forbidden" | "unreachable";

/** The state of a source as one word, for metrics and people. */
export type SourceState = ResourceState | "empty";

/** A CIDR as objects say it. */
export interface Said {
  /** Sorted. */
  readonly objects: readonly string[];
  /** It cannot count. */
  readonly problem?: string | undefined;
}

interface Entry {
  /** Canonical, or the text where it is not a CIDR. */
  readonly cidr: string;
  readonly problem?: string;
}

interface Resource {
  state: ResourceState;
  readonly objects: Map<string, readonly Entry[]>;
}

/** What one source's objects say now. */
export class SourceFacts {
  readonly #source: NetworkSource;
  readonly #resources: readonly Resource[];
  /** By CIDR the objects that say it, each under the place of its resource as well. */
  readonly #sayers = new Map<string, Map<string, Sayer>>();
  /** CIDRs of which something else may be said than at the last `take`. */
  #changed = new Set<string>();
  /** Problems of an object that were told. */
  readonly #told = new Map<string, string>();

  constructor(source: NetworkSource) {
    this.#source = source;
    this.#resources = source.resources.map(() => ({ state: "waiting", objects: new Map() }));
  }

  /**
   * @param object how people call it: `Subnet/ovn-default`
   * @returns what is wrong with the object, and was not told of it before
   */
  upsert(resource: number, object: string, raw: unknown): readonly string[] {
    const { cidrs, problems } = this.#source.read(raw);
    this.#say(resource, object, cidrs.map(checked));
    const text = problems.join("; ");
    if (this.#told.get(object) === text || text === "") return [];
    this.#told.set(object, text);
    return problems;
  }

  delete(resource: number, object: string): void {
    this.#forget(resource, object);
    this.#told.delete(object);
  }

  setState(resource: number, state: Exclude<ResourceState, "waiting">): void {
    const known = this.#resource(resource);
    // What was never listed is no better known for being unreachable.
    if (state === "unreachable" && known.state !== "listed") return;
    if (known.state === "waiting") {
      for (const entries of known.objects.values()) for (const { cidr } of entries) this.#changed.add(cidr);
    }
    known.state = state;
    if (state === "absent") for (const object of [...known.objects.keys()]) this.#forget(resource, object);
  }

  /** Nothing is waited for: what there is to know at a start is known. */
  get settled(): boolean {
    return this.#resources.every(({ state }) => state !== "waiting");
  }

  /** What no object says does not exist. */
  get complete(): boolean {
    return this.#resources.every(({ state }) => state === "listed" || state === "absent" || state === "unreachable");
  }

  /** The worst of its resources; the good ones together are absent, empty or listed. */
  get state(): SourceState {
    const states = this.#resources.map(({ state }) => state);
    const bad = (["forbidden", "unreachable", "waiting"] as const).find((state) => states.includes(state));
    if (bad !== undefined) return bad;
    if (states.every((state) => state === "absent")) return "absent";
    return this.#resources.every(({ objects }) => objects.size === 0) ? "empty" : "listed";
  }

  /** The CIDRs of which something else may be said than at the last take, which it forgets. */
  take(): Iterable<string> {
    const changed = this.#changed;
    this.#changed = new Set();
    return changed;
  }

  /**
   * @param cidr canonical, or the text where it is not one
   * @returns undefined: no object says it; those of a resource whose first list is not complete do not count
   */
  said(cidr: string): Said | undefined {
    const sayers = Array.from(this.#sayers.get(cidr)?.values() ?? []);
    const counting = sayers.filter(({ resource }) => this.#resource(resource).state !== "waiting");
    const [first] = counting;
    return first && { objects: [...new Set(counting.map(({ object }) => object))].sort(), problem: first.problem };
  }

  #forget(resource: number, object: string): void {
    this.#say(resource, object, []);
    this.#resource(resource).objects.delete(object);
  }

  #say(resource: number, object: string, entries: readonly Entry[]): void {
    const { objects } = this.#resource(resource);
    const before = objects.get(object) ?? [];
    const sayer = `${resource} ${object}`;
    const after = new Set(entries.map(({ cidr }) => cidr));
    for (const { cidr } of before) {
      if (after.has(cidr)) continue;
      const sayers = this.#sayers.get(cidr);
      sayers?.delete(sayer);
      if (sayers?.size === 0) this.#sayers.delete(cidr);
      this.#changed.add(cidr);
    }
    for (const { cidr, problem } of entries) {
      const sayers = this.#sayers.get(cidr) ?? new Map<string, Sayer>();
      if (sayers.has(sayer)) continue;
      this.#sayers.set(cidr, sayers.set(sayer, { resource, object, problem }));
      this.#changed.add(cidr);
    }
    objects.set(object, entries);
  }

  #resource(at: number): Resource {
    const resource = this.#resources[at];
    if (resource === undefined) throw new RangeError(`source ${this.#source.id} has no resource ${at}`);
    return resource;
  }
}

interface Sayer {
  readonly resource: number;
  readonly object: string;
  readonly problem: string | undefined;
}

/** Longer texts are no CIDR; they need not be kept whole. */
const LONGEST = 64;

function checked(text: string): Entry {
  const found = checkCIDR(text);
  if ("cidr" in found) return found;
  return { cidr: text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text, problem: found.problem };
}
