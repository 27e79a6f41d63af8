import { isSeq, parseDocument, stringify } from "yaml";

/** An entry of a list in the ConfigMap `fairlead-networks`. */
export type ConsentEntry = Readonly<Record<string, string>>;

/**
 * Adds an entry to a list, and keeps what stands there, comments too. An entry of the same CIDR gives way.
 *
 * @param text YAML or JSON; undefined: there is no list yet
 * @returns undefined: the text is not a list
 */
export function withEntry(text: string | undefined, entry: ConsentEntry): string | undefined {
  if (text === undefined || text.trim() === "") return stringify([entry]);
  const document = parseDocument(text);
  if (document.errors.length > 0 || !isSeq(document.contents)) return undefined;
  const entries: unknown = document.toJS();
  const same = Array.isArray(entries) ? entries.findIndex((one) => cidrOf(one) === entry["cidr"]) : -1;
  if (same >= 0) document.deleteIn([same]);
  document.addIn([], entry);
  return document.toString();
}

function cidrOf(entry: unknown): unknown {
  return typeof entry === "object" && entry !== null && "cidr" in entry ? entry.cidr : undefined;
}
