/** A JSON object of unknown content: whoever writes to an API server may send anything. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function valueAt(raw: unknown, property: string): unknown {
  return isObject(raw) ? raw[property] : undefined;
}

/** The property's value when it is an object; else an empty one. */
export function objectAt(raw: unknown, property: string): JsonObject {
  const value = valueAt(raw, property);
  return isObject(value) ? value : {};
}

/** The property's value when it is a string with content; else undefined. */
export function textAt(raw: unknown, property: string): string | undefined {
  const value = valueAt(raw, property);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** JSON merge patch (RFC 7396). */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: JsonObject = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}
