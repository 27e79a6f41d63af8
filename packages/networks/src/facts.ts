/** What the objects of one source define now, and how far they can be read. */
import { fieldsOf, isAbsent } from "@fairlead/base";
import { checkCIDR } from "@fairlead/endpoint-filter";
import type { NetworkSource, Reading, ResourceRef } from "./source.ts";

/**
 * What is known of one resource of a source. `waiting`: no complete list yet; `absent`: the server has no such
 * resource; `forbidden`: it may not be read; `unreachable`: it was listed and cannot be followed now.
 */
export type ResourceState = "waiting" | "listed" | "absent" | "forbidden" | "unreachable";

/** The state of a source as one word, for metrics and people. */
export type SourceState = ResourceState | "empty";

export interface Definition {
  /** `Subnet/ovn-default`, sorted. */
  readonly objects: readonly string[];
  /** Why it can never take effect. */
  readonly problem?: string | undefined;
  /** It is unknown whether these objects count: what selects them may not be read, or is not there. */
  readonly doubtful?: true;
}

/**
 * The state after an event: what was never listed is no better known for being unreachable.
 *
 * @param before what is known so far
 */
export function stateAfter(before: ResourceState, event: Exclude<ResourceState, "waiting">): ResourceState {
  return event === "unreachable" && before !== "listed" ? before : event;
}

/** What one source's objects define now. */
export class SourceFacts {
  readonly #source: NetworkSource;
  readonly #resources: readonly Resource[];
  /** The groups that objects of the source's selection select, by object. */
  readonly #selected = new Map<string, string>();
  /** Problems of an object that were reported. */
  readonly #reported = new Map<string, string>();

  constructor(source: NetworkSource) {
    const { selection, resources } = source;
    this.#source = source;
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
    const known = this.#resource(resource);
    if (known.selects) {
      const group = this.#source.selection?.read(raw);
      if (group === undefined) this.#selected.delete(object);
      else this.#selected.set(object, group);
      return [];
    }
    const { cidrs, problems, group } = namespacedReading(known.ref, raw) ?? this.#source.read(raw);
    known.objects.set(object, { entries: cidrs.map(entryOf), group });
    const text = problems.join("; ");
    if (this.#reported.get(object) === text || text === "") return [];
    this.#reported.set(object, text);
    return problems;
  }

  delete(resource: number, object: string): void {
    const known = this.#resource(resource);
    if (known.selects) this.#selected.delete(object);
    else {
      known.objects.delete(object);
      this.#reported.delete(object);
    }
  }

  setState(resource: number, state: Exclude<ResourceState, "waiting">): void {
    const known = this.#resource(resource);
    if (stateAfter(known.state, state) !== state) return;
    known.state = state;
    if (state !== "absent") return;
    if (known.selects) this.#selected.clear();
    else known.objects.clear();
  }

  /** Nothing is waited for: what there is to know at a start is known. */
  get settled(): boolean {
    return this.#resources.every(({ state }) => state !== "waiting");
  }

  /** A CIDR that no object defines does not exist. */
  get complete(): boolean {
    return this.#resources.every(({ selects, state }) => state !== "waiting" && (selects || state !== "forbidden"));
  }

  /** What objects do not define is known not to exist: all can be read, and not all of the CRDs are gone. */
  get readable(): boolean {
    const defining = this.#defining;
    const known = defining.every(({ state }) => state === "listed" || state === "absent");
    return known && defining.some(({ state }) => state === "listed");
  }

  /** The worst of its resources; the good ones together are absent, empty or listed. */
  get state(): SourceState {
    const states = this.#resources.map(({ state }) => state);
    const bad = (["forbidden", "unreachable", "waiting"] as const).find((state) => states.includes(state));
    if (bad !== undefined) return bad;
    const defining = this.#defining;
    if (defining.every(({ state }) => state === "absent")) return "absent";
    return defining.every(({ objects }) => objects.size === 0) ? "empty" : "listed";
  }

  /** The resources that may not be read. */
  get forbidden(): readonly ResourceRef[] {
    return this.#resources.filter(({ state }) => state === "forbidden").map(({ ref }) => ref);
  }

  /** By CIDR, or by the text that is not one. A resource whose first list is not complete defines nothing. */
  defined(): ReadonlyMap<string, Definition> {
    const selected = new Set(this.#selected.values());
    const { selection } = this.#source;
    const counts = (group: string | undefined) => group === undefined || selection?.counts(group, selected) !== false;
    const listed = this.#defining
      .filter(({ state }) => state !== "waiting")
      .flatMap(({ objects }) => Array.from(objects, ([object, { entries, group }]) => ({ object, entries, group })));
    const found = definitionsOf(listed.filter(({ group }) => counts(group)));
    if (this.#selectionKnown) return found;
    const doubtful = definitionsOf(listed.filter(({ group }) => !counts(group)));
    for (const [cidr, one] of doubtful) if (!found.has(cidr)) found.set(cidr, { ...one, doubtful: true });
    return found;
  }

  get #defining(): readonly Resource[] {
    return this.#resources.filter(({ selects }) => !selects);
  }

  /** What is not selected does not count, for sure. */
  get #selectionKnown(): boolean {
    return this.#resources.every(({ selects, state }) => !selects || state === "listed" || state === "unreachable");
  }

  #resource(at: number): Resource {
    const resource = this.#resources[at];
    if (resource === undefined) throw new RangeError(`source ${this.#source.id} has no resource ${at}`);
    return resource;
  }
}

interface Resource {
  readonly ref: ResourceRef;
  /** Its objects select which of the others count. */
  readonly selects: boolean;
  state: ResourceState;
  readonly objects: Map<string, { readonly entries: readonly Entry[]; readonly group: string | undefined }>;
}

interface Entry {
  /** Canonical, or the text where it is not a CIDR. */
  readonly cidr: string;
  /** Why it cannot count. */
  readonly problem?: string;
}

/** Longer texts are no CIDR; they need not be kept whole. */
const LONGEST = 64;

function entryOf(text: string): Entry {
  const found = checkCIDR(text);
  if ("cidr" in found) return found;
  return { cidr: text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text, problem: found.problem };
}

function definitionsOf(
  objects: readonly { readonly object: string; readonly entries: readonly Entry[] }[],
): Map<string, Definition> {
  const found = new Map<string, { readonly names: Set<string>; readonly problem: string | undefined }>();
  for (const { object, entries } of objects) {
    for (const { cidr, problem } of entries) {
      const known = found.get(cidr);
      if (known === undefined) found.set(cidr, { names: new Set([object]), problem });
      else known.names.add(object);
    }
  }
  return new Map(Array.from(found, ([cidr, { names, problem }]) => [cidr, { objects: [...names].sort(), problem }]));
}

const NAMESPACED =
  "is in a namespace, so it decides nothing for the cluster; a source with namespace and name reads that one object";

/** Of a namespaced object, unless the configuration names it: a user of one namespace may write it. */
function namespacedReading({ only }: ResourceRef, raw: unknown): Reading | undefined {
  const namespace = fieldsOf(fieldsOf(raw)["metadata"])["namespace"];
  return only !== undefined || isAbsent(namespace) ? undefined : { cidrs: [], problems: [NAMESPACED] };
}
