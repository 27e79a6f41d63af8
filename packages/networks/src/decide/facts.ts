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
  readonly problem?: string;
}

interface Resource {
  state: ResourceState;
  readonly objects: Map<string, readonly (readonly [cidr: string, problem?: string])[]>;
}

/** What one source's objects say now. */
export class SourceFacts {
  readonly #source: NetworkSource;
  readonly #resources: readonly Resource[];
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
    this.#resource(resource).objects.set(object, cidrs.map(checked));
    const text = problems.join("; ");
    if (this.#told.get(object) === text || text === "") return [];
    this.#told.set(object, text);
    return problems;
  }

  delete(resource: number, object: string): void {
    this.#resource(resource).objects.delete(object);
    this.#told.delete(object);
  }

  setState(resource: number, state: Exclude<ResourceState, "waiting">): void {
    const known = this.#resource(resource);
    // What was never listed is no better known for being unreachable.
    if (state === "unreachable" && known.state !== "listed") return;
    known.state = state;
    if (state === "absent") known.objects.clear();
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

  /** By canonical CIDR, or the text where it is not one. Of a resource whose first list is not complete: nothing. */
  said(): ReadonlyMap<string, Said> {
    const found = new Map<string, { readonly objects: Set<string>; readonly problem?: string }>();
    for (const { state, objects } of this.#resources) {
      if (state === "waiting") continue;
      for (const [object, cidrs] of objects) {
        for (const [cidr, problem] of cidrs) {
          const said = found.get(cidr) ?? { objects: new Set(), ...(problem === undefined ? {} : { problem }) };
          found.set(cidr, said);
          said.objects.add(object);
        }
      }
    }
    return new Map(Array.from(found, ([cidr, said]) => [cidr, { ...said, objects: [...said.objects].sort() }]));
  }

  #resource(at: number): Resource {
    const resource = this.#resources[at];
    if (resource === undefined) throw new RangeError(`source ${this.#source.id} has no resource ${at}`);
    return resource;
  }
}

/** Longer texts are no CIDR; they need not be kept whole. */
const LONGEST = 64;

function checked(text: string): readonly [cidr: string, problem?: string] {
  const found = checkCIDR(text);
  return "cidr" in found ? [found.cidr] : [text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text, found.problem];
}
