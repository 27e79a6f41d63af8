/** Typed looks into JSON that somebody else wrote. A value of the wrong type is the same as no value. */

export type Fields = Readonly<Record<string, unknown>>;

const NO_FIELDS: Fields = {};
const NO_ITEMS: readonly unknown[] = [];

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : NO_FIELDS;
}

export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : NO_ITEMS;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Null counts as absent, as everywhere in Kubernetes' JSON. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

export function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65_535;
}
