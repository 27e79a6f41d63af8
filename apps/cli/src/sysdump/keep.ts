/** What an archive keeps of a value, put together from parts. */

import { fieldsOf, isAbsent, isObject, parseAddressLeniently, parseCIDRLeniently } from "@fairlead/base";
import { INVALID_VALUE } from "@fairlead/config";

/**
 * What a dump keeps of a value, straight from JSON and untrusted; undefined: nothing. Only what is named is kept,
 * so that a field that nobody thought of is left out.
 */
export type Keep = (value: unknown) => unknown;

/**
 * Of an object the fields that are named; of anything else nothing. A value of the wrong form becomes `INVALID_VALUE`:
 * an archive must not say that a field is unset that is set.
 */
export function fields(of: Readonly<Record<string, Keep>>): Keep {
  const names = Object.entries(of);
  return (value) => {
    if (!isObject(value)) return undefined;
    const kept = names.flatMap(([name, keep]) => {
      if (!Object.hasOwn(value, name) || isAbsent(value[name])) return [];
      return [[name, keep(value[name]) ?? INVALID_VALUE] as const];
    });
    return Object.fromEntries(kept);
  };
}

/** Of a list the items of which anything is kept. */
export function listOf(keep: Keep): Keep {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    return value.map(keep).filter((item) => item !== undefined);
  };
}

/** Of an object every field whose name and value have these forms. */
export function recordOf(name: RegExp, keep: Keep): Keep {
  return (value) => {
    const kept = Object.entries(fieldsOf(value)).flatMap(([key, inner]) => {
      const found = name.test(key) ? keep(inner) : undefined;
      return found === undefined ? [] : [[key, found] as const];
    });
    return Object.fromEntries(kept);
  };
}

/** A text of this form. */
export function text(form: RegExp): Keep {
  return (value) => (typeof value === "string" && form.test(value) ? value : undefined);
}

export function oneOf(...values: readonly string[]): Keep {
  return (value) => (values.some((one) => one === value) ? value : undefined);
}

/** What the first of them keeps that keeps anything. */
export function either(...keeps: readonly Keep[]): Keep {
  return (value) => {
    for (const keep of keeps) {
      const kept = keep(value);
      if (kept !== undefined) return kept;
    }
    return undefined;
  };
}

export const flag: Keep = (value) => (typeof value === "boolean" ? value : undefined);
export const number: Keep = (value) => (typeof value === "number" ? value : undefined);

/** A name of an object (RFC 1123 subdomain). */
export const name = text(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/);
/** RFC 3339. */
export const time = text(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/);

export const address: Keep = (value) =>
  typeof value === "string" && parseAddressLeniently(value) !== undefined ? value : undefined;

export const cidr: Keep = (value) =>
  typeof value === "string" && parseCIDRLeniently(value.trim()) !== undefined ? value : undefined;

/** One CIDR, or several with commas between. */
export const cidrs: Keep = (value) =>
  typeof value === "string" && value.split(",").every((one) => one === "" || cidr(one) !== undefined)
    ? value
    : undefined;

/** A JSON text, of which as much is kept; it is written anew. */
export function jsonText(keep: Keep): Keep {
  return (value) => {
    if (typeof value !== "string") return undefined;
    try {
      const kept = keep(JSON.parse(value));
      return kept === undefined ? undefined : JSON.stringify(kept);
    } catch {
      return undefined;
    }
  };
}
