/** What a path of the API names. */
export interface ResourcePath {
  /** The collection in all namespaces, such as `/api/v1/services`: what the store is asked with. */
  readonly collection: string;
  readonly namespace: string | undefined;
  /** Absent: the collection itself. */
  readonly name: string | undefined;
  readonly status: boolean;
}

const PATH = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+)(\/status)?)?$/;

/** Undefined for paths that do not lead to objects. */
export function parsePath(path: string): ResourcePath | undefined {
  const found = PATH.exec(path);
  if (found === null) return undefined;
  const [, root = "", namespace, plural = "", name, status] = found;
  const decoded = name === undefined ? undefined : decodeURIComponent(name);
  return { collection: `${root}/${plural}`, namespace, name: decoded, status: status !== undefined };
}

/** The kinds that the proxies follow, and where they are. */
const KINDS = [
  { apiVersion: "v1", kind: "Node", collection: "/api/v1/nodes" },
  { apiVersion: "v1", kind: "Service", collection: "/api/v1/services" },
  { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", collection: "/apis/discovery.k8s.io/v1/endpointslices" },
  { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", collection: "/apis/networking.k8s.io/v1/servicecidrs" },
] as const;

/** What an object of a collection is; undefined for kinds that no proxy follows. */
export function kindIn(path: string): { readonly apiVersion: string; readonly kind: string } | undefined {
  const found = KINDS.find(({ collection }) => collection === path);
  return found && { apiVersion: found.apiVersion, kind: found.kind };
}

/**
 * The collection that objects of a kind are in.
 *
 * @throws Error for kinds that no proxy follows
 */
export function collectionOf(wanted: { readonly kind: string }): string {
  const found = KINDS.find(({ kind }) => kind === wanted.kind);
  if (found === undefined) throw new Error(`${wanted.kind}: no proxy follows such objects`);
  return found.collection;
}
