import { parse } from "yaml";
import type { Keep } from "./keep.ts";

/** A YAML text, of which as much is kept; it is written anew, as JSON, which is YAML. */
export function yamlText(keep: Keep): Keep {
  return (value) => {
    if (typeof value !== "string") return undefined;
    try {
      const kept = keep(parse(value, { maxAliasCount: 0, schema: "core" }));
      return kept === undefined ? undefined : JSON.stringify(kept);
    } catch {
      return undefined;
    }
  };
}
