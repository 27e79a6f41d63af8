/** Fields of the configuration by path, `conntrack.min`; list entries are `[0]`. */

import { isObject, type RawObject } from "@fairlead/base";

/** `["multiCNI", "excludeClusterCIDRs", 0]` → `multiCNI.excludeClusterCIDRs[0]` */
export function joinPath(keys: readonly PropertyKey[]): string {
  return keys.reduce<string>(
    (path, key) => (typeof key === "number" ? `${path}[${key}]` : path === "" ? String(key) : `${path}.${String(key)}`),
    "",
  );
}

export function splitPath(path: string): (string | number)[] {
  return [...path.matchAll(/[^.[\]]+/g)].map(([key]) => (/^\d+$/.test(key) ? Number(key) : key));
}

export function valueAt(root: unknown, path: string): unknown {
  return splitPath(path).reduce<unknown>((value, key) => {
    if (Array.isArray(value)) return value[Number(key)];
    return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }, root);
}

/** A copy of `root` with `value` at `path`; objects on the way are made. Paths are ours, never a user's. */
export function withValueAt(root: RawObject, path: string, value: unknown): RawObject {
  const [head = "", ...rest] = path.split(".");
  if (rest.length === 0) return { ...root, [head]: value };
  const below = root[head];
  return { ...root, [head]: withValueAt(isObject(below) ? below : {}, rest.join("."), value) };
}

type Path = readonly PropertyKey[];

/** A copy of `root` without the keys at `paths`, also of blocks in lists. */
export function withoutKeys(root: RawObject, paths: readonly Path[]): RawObject {
  const entries = Object.entries(root).flatMap(([key, value]) => {
    const below = pathsBelow(paths, key);
    return below.some((rest) => rest.length === 0) ? [] : [[key, withoutKeysIn(value, below)] as const];
  });
  return Object.fromEntries(entries);
}

function withoutKeysIn(value: unknown, paths: readonly Path[]): unknown {
  if (paths.length === 0) return value;
  if (Array.isArray(value)) return value.map((entry, at) => withoutKeysIn(entry, pathsBelow(paths, at)));
  return isObject(value) ? withoutKeys(value, paths) : value;
}

function pathsBelow(paths: readonly Path[], key: PropertyKey): readonly Path[] {
  return paths.filter(([head]) => head === key).map(([, ...rest]) => rest);
}

/** Paths of all values below objects: `conntrack.min`, `mode`, … What lies deeper than `depth` is one value. */
export function leafPaths(root: RawObject, prefix: readonly string[] = [], depth = 6): string[] {
  return Object.entries(root).flatMap(([key, value]) =>
    isObject(value) && depth > 0 ? leafPaths(value, [...prefix, key], depth - 1) : [joinPath([...prefix, key])],
  );
}
