import { fieldsOf, isAbsent } from "@fairlead/base";
import type { NetworkSource, Reading, ResourceRef } from "../sources/source.ts";
import { type Entry, entryOf } from "./entry.ts";
import { Selected } from "./selected.ts";

/**
 * What is known of one resource of a source. `waiting`: no complete list yet; `absent`: the server has no such
 * resource; `forbidden`: it may not be read; `unreachable`: it was listed and cannot be followed now.
 */
export type ResourceState = "waiting" | "listed" | "absent" | "forbidden" | "unreachable";

/**
 * The state after an event: what was never listed is no better known for being unreachable.
 *
 * @param before what is known so far
 */
export function stateAfter(before: ResourceState, event: Exclude<ResourceState, "waiting">): ResourceState {
  return event === "unreachable" && before !== "listed" ? before : event;
}

/** The state of a source as one word, for metrics and people. */
export type SourceState = ResourceState | "empty";

/** A CIDR as objects say it. */
export interface Said {
  /** Sorted. */
  readonly objects: readonly string[];
  /** It cannot count. */
  readonly problem?: string | undefined;
  /** Nobody knows whether these objects count: what selects them may not be read, or is not there. */
  readonly doubtful?: true;
}

interface Resource {
  readonly ref: ResourceRef;
  /** Its objects say which of the others count. */
  readonly selects: boolean;
  state: ResourceState;
  readonly objects: Map<string, readonly Entry[]>;
}

interface Sayer {
  readonly resource: number;
  readonly object: string;
  readonly group: string | undefined;
  readonly problem: string | undefined;
}

const NAMESPACED =
  "is in a namespace, so it decides nothing for the cluster; a source with namespace and name reads that one object";

/** What one source's objects say now. */
export class SourceFacts {
  readonly #source: NetworkSource;
  readonly #resources: readonly Resource[];
  /** By CIDR the objects that say it, each under the place of its resource as well. */
  readonly #sayers = new Map<string, Map<string, Sayer>>();
  /** CIDRs of which something else may be said than at the last `take`. */
  #changed = new Set<string>();
  /** Problems of an object that were reported. */
  readonly #told = new Map<string, string>();
  readonly #selected: Selected | undefined;

  constructor(source: NetworkSource) {
    const { selection, resources } = source;
    this.#source = source;
    this.#selected = selection && new Selected(selection);
    this.#resources = resources.map((ref) => ({
      ref,
      selects: ref === selection?.resource,
      state: "waiting",
      objects: new Map(),
    }));
  }

  /**
   * @param object how people call it: `Subnet/ovn-default`
   * @returns what is wrong with the object and was not reported before
   */
  upsert(resource: number, object: string, raw: unknown): readonly string[] {
    if (this.#resource(resource).selects) {
      if (this.#selected?.set(object, raw)) this.#hearAllAgain();
      return [];
    }
    const { cidrs, problems, group } = this.#believed(resource, raw) ?? this.#source.read(raw);
    this.#say(resource, object, cidrs.map(entryOf), group);
    const text = problems.join("; ");
    if (this.#told.get(object) === text || text === "") return [];
    this.#told.set(object, text);
    return problems;
  }

  delete(resource: number, object: string): void {
    if (this.#resource(resource).selects) {
      if (this.#selected?.delete(object)) this.#hearAllAgain();
      return;
    }
    this.#forget(resource, object);
    this.#told.delete(object);
  }

  setState(resource: number, state: Exclude<ResourceState, "waiting">): void {
    const known = this.#resource(resource);
    const wasKnown = this.#selectionKnown;
    if (stateAfter(known.state, state) !== state) return;
    if (known.state === "waiting") {
      for (const entries of known.objects.values()) for (const { cidr } of entries) this.#changed.add(cidr);
    }
    known.state = state;
    if (state === "absent") {
      if (known.selects) this.#selected?.clear();
      else for (const object of [...known.objects.keys()]) this.#forget(resource, object);
    }
    if (wasKnown !== this.#selectionKnown) this.#hearAllAgain();
  }

  /** Nothing is waited for: what there is to know at a start is known. */
  get settled(): boolean {
    return this.#resources.every(({ state }) => state !== "waiting");
  }

  /** What no object says does not exist. */
  get complete(): boolean {
    return this.#resources.every(({ selects, state }) => state !== "waiting" && (selects || state !== "forbidden"));
  }

  /** What its objects do not say is known not to exist: all can be read, and not all of the CRDs are gone. */
  get readable(): boolean {
    const tellers = this.#resources.filter(({ selects }) => !selects);
    const known = tellers.every(({ state }) => state === "listed" || state === "absent");
    return known && tellers.some(({ state }) => state === "listed");
  }

  /** The worst of its resources; the good ones together are absent, empty or listed. */
  get state(): SourceState {
    const states = this.#resources.map(({ state }) => state);
    const bad = (["forbidden", "unreachable", "waiting"] as const).find((state) => states.includes(state));
    if (bad !== undefined) return bad;
    const tellers = this.#resources.filter(({ selects }) => !selects);
    if (tellers.every(({ state }) => state === "absent")) return "absent";
    return tellers.every(({ objects }) => objects.size === 0) ? "empty" : "listed";
  }

  /** The resources that may not be read. */
  get forbidden(): readonly ResourceRef[] {
    return this.#resources.filter(({ state }) => state === "forbidden").map(({ ref }) => ref);
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
    const listed = sayers.filter(({ resource }) => this.#resource(resource).state !== "waiting");
    const counting = listed.filter(({ group }) => this.#counts(group));
    const doubtful = counting.length === 0 && !this.#selectionKnown;
    const heard = doubtful ? listed : counting;
    const [first] = heard;
    if (first === undefined) return undefined;
    const objects = [...new Set(heard.map(({ object }) => object))].sort();
    return { objects, problem: first.problem, ...(doubtful && { doubtful }) };
  }

  /** Of a namespaced object, unless the configuration names it: a user of one namespace decides for that only. */
  #believed(resource: number, raw: unknown): Reading | undefined {
    const namespace = fieldsOf(fieldsOf(raw)["metadata"])["namespace"];
    if (this.#resource(resource).ref.only !== undefined || isAbsent(namespace)) return undefined;
    return { cidrs: [], problems: [NAMESPACED] };
  }

  #counts(group: string | undefined): boolean {
    return group === undefined || this.#selected === undefined || this.#selected.counts(group);
  }

  /** What is not selected does not count, for sure. */
  get #selectionKnown(): boolean {
    return this.#resources.every(({ selects, state }) => !selects || state === "listed" || state === "unreachable");
  }

  /** Others count than before, or it is no longer known which. */
  #hearAllAgain(): void {
    for (const cidr of this.#sayers.keys()) this.#changed.add(cidr);
  }

  #forget(resource: number, object: string): void {
    this.#say(resource, object, [], undefined);
    this.#resource(resource).objects.delete(object);
  }

  #say(resource: number, object: string, entries: readonly Entry[], group: string | undefined): void {
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
      const known = sayers.get(sayer);
      if (known !== undefined && known.group === group) continue;
      this.#sayers.set(cidr, sayers.set(sayer, { resource, object, group, problem }));
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
