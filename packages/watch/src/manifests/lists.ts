import { isObject, textAt, valueAt } from "@fairlead/base";

/** The objects of a document: itself, the elements of an array, the items of a list. */
export function itemsOf(document: unknown): readonly unknown[] {
  // An empty document is what stands between two separators.
  if (document === null || document === undefined) return [];
  if (Array.isArray(document)) return document.flatMap((element) => listItems(element));
  return listItems(document);
}

/** The objects in an item of the document that `whole` is but for its items. */
export function listItem(whole: unknown, item: unknown): readonly unknown[] {
  if (Array.isArray(whole)) return listItems(item);
  const implied = impliedBy(whole);
  // Not a list, whatever it calls items: its kind is skipped.
  return implied === undefined ? [whole] : [withImplied(implied, item)];
}

function listItems(raw: unknown): readonly unknown[] {
  const items = valueAt(raw, "items");
  const implied = Array.isArray(items) || items === null ? impliedBy(raw) : undefined;
  if (implied === undefined) return [raw];
  return (Array.isArray(items) ? items : []).map((item: unknown) => withImplied(implied, item));
}

/** What items of `kind: List`, and of `ServiceList` and the like, don't say themselves; undefined: it is no list. */
function impliedBy(raw: unknown): object | undefined {
  const kind = textAt(raw, "kind");
  if (kind?.endsWith("List") !== true) return undefined;
  const itemKind = kind.slice(0, -"List".length);
  return itemKind === "" ? {} : { apiVersion: valueAt(raw, "apiVersion"), kind: itemKind };
}

function withImplied(implied: object, item: unknown): unknown {
  return isObject(item) ? { ...implied, ...item } : item;
}
