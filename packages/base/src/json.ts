/** Reads JSON of unknown origin: fields of the expected type or nothing, and bounds of depth and size. */

/** Looks into JSON of unknown content: a value of the wrong type is the same as no value. */

/** A JSON object. */
export type RawObject = Record<string, unknown>;

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

const NO_FIELDS: RawObject = Object.freeze({});

/** The object itself; for anything else an immutable one without fields. */
export function fieldsOf(value: unknown): Readonly<RawObject> {
  return isObject(value) ? value : NO_FIELDS;
}

const NO_ITEMS: readonly unknown[] = [];

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

const [QUOTE, OPEN, BACKSLASH, CLOSE, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d];

/**
 * Whether the text, taken for JSON, has objects and arrays in one another deeper than `maxDepth`; it is not read for
 * that.
 */
export function isTooDeep(text: string, maxDepth: number): boolean {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) inText = !inText;
    else if (inText) at += unit === BACKSLASH ? 1 : 0;
    else if (unit === OPEN || unit === OPEN_OBJECT) depth++;
    else if (unit === CLOSE || unit === CLOSE_OBJECT) depth--;
    if (depth > maxDepth) return true;
  }
  return false;
}

/** What a tree may have at most. */
export interface TreeBounds {
  /** Levels of objects and lists. */
  readonly depth: number;
  /** Characters of its texts and names, and 4 for each other value. */
  readonly size: number;
}

/**
 * Why a value that was read is not a tree that can be walked and written: aliases of YAML can make one that contains
 * itself, or that is a thousand times as large as its text.
 *
 * @returns undefined: it is one
 */
export function treeProblem(value: unknown, bounds: TreeBounds): string | undefined {
  const path: unknown[] = [];
  let size = 0;
  const walk = (part: unknown): string | undefined => {
    size += typeof part === "string" ? part.length : 4;
    if (size > bounds.size) return `larger than ${bounds.size / 2 ** 20} MiB with its aliases`;
    if (typeof part !== "object" || part === null) return undefined;
    if (path.includes(part)) return "an alias stands inside what it refers to";
    if (path.length === bounds.depth) return `nested deeper than ${bounds.depth} levels`;
    path.push(part);
    for (const [key, child] of Object.entries(part)) {
      size += key.length;
      const problem = walk(child);
      if (problem !== undefined) return problem;
    }
    path.pop();
    return undefined;
  };
  return walk(value);
}
