/**
 * Whether objects of a kind are of a resource of which only the plural is known. A server's discovery would tell, as
 * would the resource's definition; without them the kind is guessed as Kubernetes itself does
 * (UnsafeGuessKindToResource of k8s.io/apimachinery).
 */
export function isKindOf(kind: string, plural: string): boolean {
  const singular = kind.toLowerCase();
  return singular === plural || pluralOf(singular) === plural;
}

function pluralOf(singular: string): string {
  if (/(?:s|x|z|ch|sh)$/.test(singular)) return `${singular}es`;
  return singular.endsWith("y") ? `${singular.slice(0, -1)}ies` : `${singular}s`;
}
