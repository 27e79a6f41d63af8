import type { ResourceSpec } from "../resources.ts";

/** Objects a page, as client-go asks for. */
export const PAGE_SIZE = 500;

/** A watch from a version on. */
export function watchPath(spec: ResourceSpec, version: string, timeoutSeconds: number): string {
  return path(spec, {
    watch: "true",
    resourceVersion: version,
    allowWatchBookmarks: "true",
    timeoutSeconds: String(timeoutSeconds),
  });
}

/**
 * A watch that begins with all objects (KEP-3157).
 *
 * @param version not older than this; undefined or "": the latest
 */
export function watchListPath(spec: ResourceSpec, version: string | undefined, timeoutSeconds: number): string {
  return path(spec, {
    watch: "true",
    sendInitialEvents: "true",
    resourceVersionMatch: "NotOlderThan",
    resourceVersion: version ?? "",
    allowWatchBookmarks: "true",
    timeoutSeconds: String(timeoutSeconds),
  });
}

/**
 * The whole list at once, from the API server's cache where it may be: it ignores a limit there.
 *
 * @param version not older than this; undefined: whatever the cache has; "": the latest
 */
export function listPath(spec: ResourceSpec, version: string | undefined): string {
  return path(spec, { resourceVersion: version ?? "0" });
}

/** One page of the list from etcd. */
export function pagePath(spec: ResourceSpec, next: string | undefined): string {
  return path(spec, { limit: String(PAGE_SIZE), ...(next === undefined ? {} : { continue: next }) });
}

function path(spec: ResourceSpec, query: Record<string, string>): string {
  const parameters = new URLSearchParams({
    ...(spec.labelSelector === undefined ? {} : { labelSelector: spec.labelSelector }),
    ...(spec.fieldSelector === undefined ? {} : { fieldSelector: spec.fieldSelector }),
    ...query,
  });
  return `${spec.path}?${parameters}`;
}
