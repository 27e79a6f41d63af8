/** A resource of the API whose objects tell a network's CIDRs. */
export interface ResourceRef {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** For people to read: `Subnet/ovn-default`. */
  readonly kind: string;
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
  /** What is wrong with the object: the field, and what would be right. */
  readonly problems: readonly string[];
}

/** Where CIDRs are learnt from: one configured source. */
export interface NetworkSource {
  /** Unique among the sources: its name, or the resource of a custom one. */
  readonly id: string;
  /** Id and settings, which say together what is read: what was learnt under others says nothing about this one. */
  readonly scope: string;
  /** All of them are followed; a network may have its objects in several groups or versions. */
  readonly resources: readonly ResourceRef[];
  /** Reads an object of any of the resources, straight from JSON and untrusted. Never throws. */
  read(raw: unknown): Reading;
}

/** A network's own kind of source: a file of its own and a row in `index.ts`. */
export interface SourceKind {
  readonly resources: readonly ResourceRef[];
  read(raw: unknown, settings: SourceSettings): Reading;
}

export interface SourceSettings {
  /** kube-ovn-subnets: the VPCs whose subnets count. */
  readonly vpcs?: readonly string[];
}
