/** What a source of CIDRs is, and how its objects are read: as untrusted input. */
import { fieldsOf, isAbsent, itemsOf, type RawObject } from "@fairlead/base";
import { quoted } from "@fairlead/core";

/** A resource of the API whose objects define a network's CIDRs. */
export interface ResourceRef {
  /** Empty for the core group. */
  readonly group: string;
  /** Its version in the API's path: `v1`. */
  readonly version: string;
  /** Its name in the API's path: `subnets`. */
  readonly plural: string;
  /** For people to read: `Subnet/ovn-default`. */
  readonly kind: string;
  /** Its objects are in namespaces; false: they are cluster-wide. */
  readonly namespaced: boolean;
  /** No other object of the resource is asked for. */
  readonly only?: { readonly namespace: string; readonly name: string };
}

/** What one object says. */
export interface Reading {
  /** As they are written, or canonical where they follow from a range of addresses. */
  readonly cidrs: readonly string[];
  /** Why the object does not count, although it is right. */
  readonly ignored?: string;
  /** What the object belongs to: the source's `selection` says whether that counts. Absent: it counts. */
  readonly group?: string;
  /** What is wrong with the object: the field, and what would be right. */
  readonly problems: readonly string[];
}

/** A second resource: its objects define no CIDRs, but which objects of the first ones count. */
export interface Selection {
  /** One of the source's resources; its objects are read by this only. */
  readonly resource: ResourceRef;
  /** The group that an object selects, undefined: none. Straight from JSON and untrusted; never throws. */
  read(raw: unknown): string | undefined;
  /**
   * Whether objects of a group count.
   *
   * @param selected by all of its objects; none where it is absent, or may not be read
   */
  counts(group: string, selected: ReadonlySet<string>): boolean;
}

/** Where CIDRs are learned from: one configured source. */
export interface NetworkSource {
  /** Unique among the sources: its name, or the resource of a custom one. */
  readonly id: string;
  /** Id and settings, which say together what is read: what was learned under others says nothing about this one. */
  readonly scope: string;
  /** All of them are followed; a network may have its objects in several groups or versions. */
  readonly resources: readonly ResourceRef[];
  /** Absent: all objects count that do not say themselves that they do not. */
  readonly selection?: Selection;
  /** Reads an object of any resource that defines CIDRs, straight from JSON and untrusted. Never throws. */
  read(raw: unknown): Reading;
}

/**
 * A network's own kind of source: a row in `source-kinds.ts`. `pnpm run sources` and config's
 * `pnpm run schema` write what follows from it; a test names each file that is missing something.
 */
export interface SourceKind {
  /** The resources that have its objects. */
  readonly resources: readonly ResourceRef[];
  /** The credentials of a node can write its objects, so `within` has to be set. */
  readonly writtenByNodes?: true;
  /** A second resource that selects which objects count; absent: all do. */
  selection?(settings: SourceSettings): Selection;
  /** What an object says. Straight from JSON and untrusted; never throws. */
  read(raw: unknown): Reading;
}

/** What the configuration says of one source. */
export interface SourceSettings {
  /** kube-ovn-subnets: the VPCs whose subnets count. Absent: the default one. */
  readonly vpcs?: readonly string[];
  /** flannel: its ConfigMap. Absent: kube-flannel/kube-flannel-cfg. */
  readonly only?: NonNullable<ResourceRef["only"]>;
}

/** core/v1 Nodes, all of them: several sources read them, and their addresses are neutral. */
export const NODES: ResourceRef = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };

/** core/v1 Namespaces, for rules that ask for their labels. */
export const NAMESPACES: ResourceRef = {
  group: "",
  version: "v1",
  plural: "namespaces",
  kind: "Namespace",
  namespaced: false,
};

/** Name of the ConfigMap with what operators accepted. */
export const CONSENT_NAME = "fairlead-networks";

/** The ConfigMap with what operators accepted. */
export function consentObject(namespace: string): ResourceRef {
  const only = { namespace, name: CONSENT_NAME };
  return { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true, only };
}

/**
 * The CIDRs that count of all objects as they are now, for callers that look once and have no services. As they are
 * written; each once.
 *
 * @param objects of a resource, straight from JSON and untrusted
 */
export function cidrsOf(
  { resources, selection, read }: NetworkSource,
  objects: (resource: ResourceRef) => readonly unknown[],
): readonly string[] {
  const selecting = selection === undefined ? [] : objects(selection.resource);
  const selected = new Set(selecting.flatMap((raw) => selection?.read(raw) ?? []));
  const readings = resources
    .filter((resource) => resource !== selection?.resource)
    .flatMap((resource) => objects(resource).map(read));
  const counting = readings.filter(({ group }) => group === undefined || selection?.counts(group, selected) !== false);
  return [...new Set(counting.flatMap(({ cidrs }) => cidrs))];
}

/** Gathers what one object says. */
export class ReadingBuilder {
  readonly #cidrs: string[] = [];
  readonly #problems: string[] = [];

  /** Takes a text of one CIDR, or of several separated by commas. Absent: nothing. */
  add(field: string, value: unknown): void {
    if (isAbsent(value) || value === "") return;
    if (typeof value !== "string") this.problem(field, value, "must be a CIDR");
    else for (const part of value.split(",", MOST_CIDRS + 1)) this.#take(field, part.trim());
  }

  /** Takes a list of CIDRs. Absent: nothing. */
  addAll(field: string, values: unknown): void {
    if (isAbsent(values)) return;
    if (!Array.isArray(values)) this.problem(field, values, "must be a list of CIDRs");
    else for (const [at, value] of values.slice(0, MOST_CIDRS + 1).entries()) this.add(`${field}[${at}]`, value);
  }

  problem(field: string, value: unknown, message: string): void {
    if (this.#problems.length < 10) this.#problems.push(`${field} is ${shown(value)}; ${message}`);
  }

  done(): Reading {
    return { cidrs: this.#cidrs, problems: this.#problems };
  }

  #take(field: string, cidr: string): void {
    if (this.#cidrs.length < MOST_CIDRS) this.#cidrs.push(cidr);
    else if (this.#cidrs.length === MOST_CIDRS)
      this.problem(field, cidr, `only the first ${MOST_CIDRS} CIDRs are used`);
  }
}

export function ignored(why: string): Reading {
  return { cidrs: [], ignored: why, problems: [] };
}

export function specOf(raw: unknown): RawObject {
  return fieldsOf(fieldsOf(raw)["spec"]);
}

/** The fields of each item of a list; what is no object has no fields. */
export function recordsOf(value: unknown): readonly RawObject[] {
  return itemsOf(value).map(fieldsOf);
}

/** A value of unknown origin, on one line and short. */
export function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
  return quoted(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** Objects of one kind hold a handful; more than that is meant to be expensive. */
const MOST_CIDRS = 1_000;
