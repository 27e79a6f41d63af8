import { objectAt, textAt } from "@fairlead/base";
import type { ObjectKey } from "./change.ts";

/** Key of an API object by its metadata; undefined when it has no usable name. */
export function objectKeyOf(raw: unknown): ObjectKey | undefined {
  const metadata = objectAt(raw, "metadata");
  const name = textAt(metadata, "name");
  if (name === undefined) return undefined;
  // Joined, so that the string is flat: a template would keep its parts alongside it.
  return [textAt(metadata, "namespace") ?? "", name].join("/") as ObjectKey;
}

export function resourceVersionOf(raw: unknown): string | undefined {
  return textAt(objectAt(raw, "metadata"), "resourceVersion");
}
