import { objectAt, type RawObject, textAt, valueAt } from "@fairlead/base";

/** Just the selectors that a proxy sends: `!label`, `a.b!=value`, `a.b=value`; and those of one namespace. */
export function selection(query: URLSearchParams, namespace?: string): (raw: RawObject) => boolean {
  const labelled = query.get("labelSelector");
  const [label = "", wanted] = labelled?.replace(/^!/, "").split("=") ?? [];
  const field = /^([\w.]+?)(!?=)(.*)$/.exec(query.get("fieldSelector") ?? "");
  return (raw) => {
    const metadata = objectAt(raw, "metadata");
    if (namespace !== undefined && textAt(metadata, "namespace") !== namespace) return false;
    if (labelled !== null && valueAt(objectAt(metadata, "labels"), label) !== wanted) return false;
    if (field === null) return true;
    const value = (field[1] ?? "").split(".").reduce<unknown>((at, name) => valueAt(at, name), raw);
    return field[2] === "=" ? value === field[3] : value !== field[3];
  };
}
