import type { NetworkSource, ResourceRef } from "./source.ts";

/**
 * The CIDRs that count of all objects as they are now, for who looks once and has no services to ask. As they are
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
