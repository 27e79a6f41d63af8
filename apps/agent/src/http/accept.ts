/** A media type that a client accepts, with its parameters. */
interface Clause {
  readonly type: string;
  readonly params: ReadonlyMap<string, string>;
  readonly quality: number;
}

/** What is to be sent: text, or an object of a version in a media type. */
export type Chosen =
  | { readonly kind: "text" }
  | { readonly kind: "object"; readonly mediaType: "application/json" | "application/yaml"; readonly version: string };

const TEXT = ["text/plain", "text/*", "*/*"];
const STRUCTURED = [
  ["application/json", ["application/json", "application/*", "*/*"]],
  ["application/yaml", ["application/yaml"]],
] as const;

/**
 * Chooses between text and an object of `group` as API servers do (KEP-4827): text for a type without parameters, an
 * object for one that names it by `g`, `v` and `as`.
 *
 * @param header of Accept; "": whatever there is
 * @returns undefined: nothing that the client accepts
 */
export function negotiate(
  header: string,
  { group, kind, versions }: { readonly group: string; readonly kind: string; readonly versions: readonly string[] },
): Chosen | undefined {
  if (header.trim() === "") return { kind: "text" };
  for (const { type, params } of clauses(header)) {
    const [g, v, as] = [params.get("g"), params.get("v"), params.get("as")];
    if (g === undefined && v === undefined && as === undefined) {
      if (TEXT.includes(type)) return { kind: "text" };
    } else if (g === group && as === kind && v !== undefined && versions.includes(v)) {
      const mediaType = STRUCTURED.find(([, accepted]) => accepted.some((one) => one === type))?.[0];
      if (mediaType !== undefined) return { kind: "object", mediaType, version: v };
    }
  }
  return undefined;
}

/** Best first. */
function clauses(header: string): readonly Clause[] {
  const all = header.split(",").map((clause): Clause => {
    const [type = "", ...rest] = clause.split(";").map((part) => part.trim());
    const params = new Map(
      rest.map((part) => [part.split("=", 1)[0] ?? "", part.split("=").slice(1).join("=")] as const),
    );
    return { type: type.toLowerCase(), params, quality: Number(params.get("q") ?? 1) };
  });
  return all.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality);
}
