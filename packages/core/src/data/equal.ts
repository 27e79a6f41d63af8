import { isObject, type RawObject } from "@fairlead/base";
/** Structural equality of plain data (what JSON can hold). Property order means nothing. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && equalLists(a, b);
  return isObject(a) && isObject(b) && equalRecords(a, b);
}

export function equalLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

function equalRecords(a: Readonly<RawObject>, b: Readonly<RawObject>): boolean {
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  for (const key of keys) {
    if (!equal(a[key], b[key]) || !Object.hasOwn(b, key)) return false;
  }
  return true;
}
