import type { OtherResource } from "../change.ts";

/**
 * Whether objects of a kind are of a resource of which only the plural is known, as an operator writes it: that says so
 * by having it in place of its kind. A server's discovery would tell; files do not, so the kind is guessed as
 * Kubernetes itself does (UnsafeGuessKindToResource of k8s.io/apimachinery).
 */
export function isKindOf(kind: string, { plural, kind: known }: Pick<OtherResource, "plural" | "kind">): boolean {
  if (known !== plural) return false;
  const singular = kind.toLowerCase();
  return singular === plural || pluralOf(singular) === plural;
}

function pluralOf(singular: string): string {
  if (/(?:s|x|z|ch|sh)$/.test(singular)) return `${singular}es`;
  return singular.endsWith("y") ? `${singular.slice(0, -1)}ies` : `${singular}s`;
}
