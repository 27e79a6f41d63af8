import type { ObjectKey } from "./change.ts";

/** A JSON object of unknown content. */
export type RawObject = Record<string, unknown>;

export function isObject(value: unknown): value is RawObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function valueAt(raw: unknown, property: string): unknown {
  return isObject(raw) ? raw[property] : undefined;
}

/** The property's value when it is an object; else an empty one. */
export function objectAt(raw: unknown, property: string): RawObject {
  const value = valueAt(raw, property);
  return isObject(value) ? value : {};
}

/** The property's objects when it is an array; what isn't an object in it is left out. */
export function objectsAt(raw: unknown, property: string): RawObject[] {
  const value = valueAt(raw, property);
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The property's value when it is a string with content; else undefined. */
export function textAt(raw: unknown, property: string): string | undefined {
  const value = valueAt(raw, property);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Key of an API object by its metadata; undefined when it has no usable name. */
export function keyOf(raw: unknown): ObjectKey | undefined {
  const metadata = objectAt(raw, "metadata");
  const name = textAt(metadata, "name");
  if (name === undefined) return undefined;
  // Joined, so that the string is flat: a template would keep its parts beside it.
  return [textAt(metadata, "namespace") ?? "", name].join("/") as ObjectKey;
}

export function resourceVersionOf(raw: unknown): string | undefined {
  return textAt(objectAt(raw, "metadata"), "resourceVersion");
}
