import { isObject } from "@fairlead/base";
import { decodeService, type Service } from "@fairlead/core";

/** The services of a JSON array or list of objects; undefined: it cannot be read. */
export function servicesIn(content: Uint8Array): readonly Service[] | undefined {
  return objectsIn(content)?.flatMap((raw) => {
    // The kind of a list's objects may stand in the list only.
    if (!isObject(raw) || (raw["kind"] ?? SERVICE) !== SERVICE) return [];
    const metadata = isObject(raw["metadata"]) ? raw["metadata"] : {};
    return decodeService({ ...raw, metadata: { namespace: "default", ...metadata } }).object ?? [];
  });
}

const SERVICE = "Service";

function objectsIn(content: Uint8Array): readonly unknown[] | undefined {
  try {
    const document: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
    const objects = isObject(document) ? document["items"] : document;
    return Array.isArray(objects) ? objects : undefined;
  } catch {
    return undefined;
  }
}
