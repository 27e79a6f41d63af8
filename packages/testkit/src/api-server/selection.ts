import { objectAt, type RawObject, textAt, valueAt } from "@fairlead/base";

/** Equality-based selectors with commas between: `!label`, `label`, `a.b!=value`, `a.b=value`; one namespace. */
export function selection(query: URLSearchParams, namespace?: string): (raw: RawObject) => boolean {
  const labels = termsOf(query.get("labelSelector"));
  const fields = termsOf(query.get("fieldSelector"));
  return (raw) => {
    const metadata = objectAt(raw, "metadata");
    if (namespace !== undefined && textAt(metadata, "namespace") !== namespace) return false;
    const own = objectAt(metadata, "labels");
    if (!labels.every((term) => matches(term, valueAt(own, term.name)))) return false;
    return fields.every((term) =>
      matches(
        term,
        term.name.split(".").reduce<unknown>((at, name) => valueAt(at, name), raw),
      ),
    );
  };
}

interface Term {
  readonly name: string;
  readonly is: "=" | "!=" | "there" | "absent";
  readonly value: string;
}

function termsOf(selector: string | null): readonly Term[] {
  return (selector ?? "").split(",").filter(Boolean).map(termOf);
}

function termOf(text: string): Term {
  if (text.startsWith("!")) return { name: text.slice(1), is: "absent", value: "" };
  const [, name = "", operator, value = ""] = /^(.+?)(!=|==?)(.*)$/.exec(text) ?? [];
  if (operator === undefined) return { name: text, is: "there", value };
  return { name, is: operator === "!=" ? "!=" : "=", value };
}

function matches({ is, value: wanted }: Term, value: unknown): boolean {
  if (is === "there") return value !== undefined;
  if (is === "absent") return value === undefined;
  return (value === wanted) === (is === "=");
}
