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
 * A network's own kind of source: a file of its own and a row in `index.ts`. `pnpm run sources` and config's
 * `pnpm run schema` write what follows from it; a test names each file that is missing something.
 */
export interface SourceKind {
  /** The resources that have its objects. */
  readonly resources: readonly ResourceRef[];
  /** Why nothing is learned from it, in words for the operator. Absent: it is. */
  readonly useless?: string;
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
