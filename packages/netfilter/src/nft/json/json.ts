/** What JSON has. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

export type JsonObject = { readonly [name: string]: Json };

export function isObject(json: Json | undefined): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

export function isList(json: Json | undefined): json is readonly Json[] {
  return Array.isArray(json);
}

/** A member of an object; undefined where it is not an object or has no such member. */
export function member(json: Json | undefined, ...names: readonly string[]): Json | undefined {
  return names.reduce<Json | undefined>((inner, name) => (isObject(inner) ? inner[name] : undefined), json);
}

export function text(json: Json | undefined): string | undefined {
  return typeof json === "string" ? json : undefined;
}

export function number(json: Json | undefined): number | undefined {
  return typeof json === "number" ? json : undefined;
}

/** One or several. */
export function listOf(json: Json | undefined): readonly Json[] {
  if (isList(json)) return json;
  return json === undefined ? [] : [json];
}
