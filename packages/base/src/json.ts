/** Looks into JSON of unknown content: a value of the wrong type is the same as no value. */

/** A JSON object. */
export type RawObject = Record<string, unknown>;

const NO_FIELDS: RawObject = Object.freeze({});
const NO_ITEMS: readonly unknown[] = [];

/** What a text says in JSON; undefined where it is not JSON. */
export function parseJSON(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether a value of JSON is an object: not null, not an array. */
export function isObject(value: unknown): value is RawObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object itself; for anything else an immutable one without fields. */
export function fieldsOf(value: unknown): Readonly<RawObject> {
  return isObject(value) ? value : NO_FIELDS;
}

/** The list itself; for anything else one without items. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : NO_ITEMS;
}

/** The value where it is text; undefined otherwise. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The value where it is a number; undefined otherwise. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Null counts as absent, as everywhere in Kubernetes' JSON. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** What stands below these names, one in the other; undefined where there is no such field. */
export function valueAt(raw: unknown, ...names: readonly string[]): unknown {
  return names.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), raw);
}

/** The field's value when it is an object; else one without fields. */
export function objectAt(raw: unknown, name: string): Readonly<RawObject> {
  return fieldsOf(valueAt(raw, name));
}

/** The field's objects when it is a list; what is not an object in it is left out. */
export function objectsAt(raw: unknown, name: string): RawObject[] {
  return itemsOf(valueAt(raw, name)).filter(isObject);
}

/** The field's value when it is a string with content; else undefined. */
export function textAt(raw: unknown, name: string): string | undefined {
  return stringOf(valueAt(raw, name)) || undefined;
}
