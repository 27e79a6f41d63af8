/**
 * What both sources give: the changes of each resource, in order. An upsert carries the whole object as the caller's
 * `decode` trimmed it; the raw object is dropped as soon as `decode` returns.
 */

/**
 * `namespace/name`; cluster-scoped objects have an empty namespace (`/node-a`), as Kubernetes' own NamespacedName is
 * written.
 */
export type ObjectKey = `${string}/${string}`;

/** An object was added, or is different now. */
export interface Upsert<T> {
  readonly type: "upsert";
  /** The object's namespace and name. */
  readonly key: ObjectKey;
  /** The object, decoded. */
  readonly object: T;
}

/** An object is gone. */
export interface Delete {
  readonly type: "delete";
  /** The object's namespace and name. */
  readonly key: ObjectKey;
}

/** The first complete list of the resource has been given. Comes once, also when that list is empty. */
export interface Synced {
  readonly type: "synced";
}

/**
 * Changes of one resource. Upserts are idempotent: after a relist every object comes again, changed or not. A delete
 * names a key that was upserted before and not deleted since.
 */
export type ObjectChange<T> = Upsert<T> | Delete | Synced;

/** What a consumer wants to know of one resource. */
export interface Subscription<T> {
  /**
   * Trims a raw object, straight from JSON or YAML and untrusted, to what the consumer keeps. `undefined`: the object
   * is not wanted or not valid; if an earlier state of it was given, a delete follows. A throw counts as `undefined`
   * and is reported.
   */
  readonly decode: (raw: unknown) => T | undefined;
  /**
   * Called in order, one change at a time. While a returned promise is pending nothing more is read (back-pressure).
   */
  readonly onChange: (change: ObjectChange<T>) => void | Promise<void>;
}

/** A resource alongside those that every proxy follows; one that the server may not have, or not let us read. */
export interface OtherResource {
  /** Empty for the core group. */
  readonly group: string;
  /** Its version in the API's path: `v1`. */
  readonly version: string;
  /** Its name in the API's path: `subnets`. */
  readonly plural: string;
  /** The kind of its objects: `Subnet`. */
  readonly kind: string;
  /** Its objects are in namespaces; false: they are cluster-wide. */
  readonly namespaced: boolean;
  /** No other object of the resource is asked for. */
  readonly only?: { readonly namespace: string; readonly name: string };
  /** Objects without this label are not asked for; without a value, it may have any. */
  readonly label?: { readonly name: string; readonly value?: string };
}

/**
 * `listed`: it is followed, also again; `absent`: the server has no such resource, and what there was of it is deleted;
 * `forbidden`, `unreachable`: it cannot be read now, and what is known of it stays. All are asked for again, a resource
 * that is absent every 30 s.
 */
export type OtherState = "listed" | "absent" | "forbidden" | "unreachable";

export interface OtherSubscription extends Subscription<unknown> {
  /** The resource that is followed. */
  readonly resource: OtherResource;
  /** Called whenever it is known, also when nothing changed. Manifest files do not call it. */
  readonly onState: (state: OtherState) => void;
}

/** Resources that a source can follow. What is not subscribed is not asked for. */
export interface Subscriptions<S = unknown, E = unknown, N = unknown, C = unknown> {
  /**
   * core/v1 Services of this proxy, by their label service.kubernetes.io/service-proxy-name, with a clusterIP other
   * than None.
   */
  readonly services?: Subscription<S>;
  /** discovery.k8s.io/v1 EndpointSlices without the label service.kubernetes.io/headless. */
  readonly endpointSlices?: Subscription<E>;
  /** core/v1 Node of the name given to the source, and no other. */
  readonly node?: Subscription<N>;
  /** networking.k8s.io/v1 ServiceCIDRs; a server that has none gives an empty list. */
  readonly serviceCIDRs?: Subscription<C>;
  /** No resource twice. */
  readonly others?: readonly OtherSubscription[];
}

/** `subnets.v1.kubeovn.io` */
export type OtherName = `${string}.${string}`;

/** The resources' names as they appear in reports; the properties of {@link Subscriptions}, or another one's name. */
export type ResourceName = Exclude<keyof Subscriptions, "others"> | OtherName;

/** A source of ordered changes: the Kubernetes API or manifest files. */
export interface ObjectSource {
  /**
   * Follows the subscribed resources until `signal` aborts, then resolves. Whatever goes wrong outside is reported and
   * tried again. Rejects only when a consumer's `onChange` throws: its state is then unknown.
   */
  run<S, E, N, C>(subscriptions: Subscriptions<S, E, N, C>, signal: AbortSignal): Promise<void>;
}
