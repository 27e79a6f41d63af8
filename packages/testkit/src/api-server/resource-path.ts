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

/** Undefined for paths that are none of objects. */
export function parsePath(path: string): ResourcePath | undefined {
  const found = PATH.exec(path);
  if (found === null) return undefined;
  const [, root = "", namespace, plural = "", name, status] = found;
  return { collection: `${root}/${plural}`, namespace, name, status: status !== undefined };
}
