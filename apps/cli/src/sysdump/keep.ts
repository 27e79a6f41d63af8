/** What an archive keeps of a value: the fields that a table names, each with a value of a form that no secret has. */

import { isAbsent, isObject, parseAddressLeniently, parseCIDRLeniently } from "@fairlead/base";
import { INVALID_VALUE } from "@fairlead/config";
import { parse } from "yaml";

/**
 * What a dump keeps of a value, straight from JSON and untrusted; undefined: nothing. Only named fields
 * are kept, so that a dump leaves out a field that this list does not know.
 */
export type Keep = (value: unknown) => unknown;

/**
 * Names of fields by the path of the object that has them, `spec.ports`; lists on the way, and JSON or YAML in a text,
 * are passed through. A field without a `Keep` keeps what is `plain`. The name `*` stands for every plain name.
 */
export type KeptFields = Readonly<Record<string, readonly (string | readonly [name: string, keep: Keep])[]>>;

/**
 * Of an object the fields of the tables. A value of the wrong form becomes `INVALID_VALUE`: an archive must not say
 * that a field is unset that is set. Where tables overlap the first one counts.
 */
export function fields(...tables: readonly KeptFields[]): Keep {
  const tree: Tree = new Map();
  for (const table of tables) {
    for (const [path, names] of Object.entries(table)) {
      const at = namesIn(path);
      if (names.length === 0) insert(tree, at, new Map());
      for (const field of names) {
        const [name, keep] = typeof field === "string" ? [field, plain] : field;
        insert(tree, [...at, name], keep);
      }
    }
  }
  return (value) => keptOf(tree, value);
}

/** The names of a path: `\\.` stands for a dot in a name, and `[]` behind one for a list. */
function namesIn(path: string): readonly string[] {
  const names = path.split(/(?<!\\)\./).map((name) => name.replace(/\[\]$/, "").replaceAll("\\.", "."));
  return names.filter((name) => name !== "");
}

/** Numbers, flags, and texts as Kubernetes' fields have them; not free text, keys or tokens. */
export const plain: Keep = (value) => {
  if (Array.isArray(value)) return value.map(plain).filter((item) => item !== undefined);
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (typeof value !== "string") return undefined;
  return PLAIN.test(value) || parseAddressLeniently(value) !== undefined ? value : undefined;
};

/** A CIDR, or several with commas between, or a list. */
export const cidrs: Keep = (value) => {
  if (Array.isArray(value)) return value.map(cidrs).filter((item) => item !== undefined);
  if (typeof value !== "string") return undefined;
  return value.split(",").every((one) => one === "" || parseCIDRLeniently(one.trim()) !== undefined)
    ? value
    : undefined;
};

export function text(form: RegExp): Keep {
  return (value) => (typeof value === "string" && form.test(value) ? value : undefined);
}

/** A text in YAML, or JSON, of which as much is kept; it is written anew, as JSON. */
export function yamlText(keep: Keep): Keep {
  return (value) => {
    if (typeof value !== "string") return undefined;
    try {
      const parsed: unknown = parse(value, { maxAliasCount: 0, schema: "core" });
      return typeof parsed === "object" && parsed !== null ? JSON.stringify(keep(parsed)) : undefined;
    } catch {
      return undefined;
    }
  };
}

/** A time (RFC 3339); names, lists and versions of small letters, digits and marks; one word, as `ClientIP`, `IPv4`. */
const PLAIN = /^(?:\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)|(?:[a-z0-9][a-z0-9.,:=/+_-]{0,252})?|[A-Za-z]{1,40}\d?)$/;

/** Keys of maps that their authors choose. */
const KEY = /^[a-z0-9][a-z0-9.-]{0,62}$/;

type Tree = Map<string, Tree | Keep>;

function insert(tree: Tree, [name = "", ...rest]: readonly string[], keep: Tree | Keep): void {
  const known = tree.get(name);
  if (rest.length === 0) {
    if (known === undefined) tree.set(name, keep);
    return;
  }
  if (typeof known === "function") return;
  const inner: Tree = known ?? new Map();
  tree.set(name, inner);
  insert(inner, rest, keep);
}

function keptOf(tree: Tree, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => keptOf(tree, item)).filter((item) => item !== undefined);
  if (typeof value === "string") return yamlText((parsed) => keptOf(tree, parsed))(value);
  if (!isObject(value)) return undefined;
  const kept = [...tree].flatMap(([name, inner]) =>
    (name === "*" ? Object.keys(value).filter((key) => KEY.test(key)) : [name]).flatMap((key) => {
      if (!Object.hasOwn(value, key) || isAbsent(value[key])) return [];
      const found = typeof inner === "function" ? inner(value[key]) : keptOf(inner, value[key]);
      return [[key, found ?? INVALID_VALUE] as const];
    }),
  );
  return Object.fromEntries(kept);
}
