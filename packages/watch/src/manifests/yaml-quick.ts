import { CORE_SCHEMA, loadAll, mapTag } from "js-yaml";
import { MAX_DEPTH } from "../limits.ts";
import { boundedTree } from "./bounded-tree.ts";

/** Keys that are words, as those of objects are: parsers differ in what others become, and a merge is none. */
const wordsOnly: typeof mapTag = {
  ...mapTag,
  addPair: (container, key, value) =>
    typeof key === "string" && key !== "<<" ? mapTag.addPair(container, key, value) : "an unusual key",
};

const OPTIONS = { schema: CORE_SCHEMA.withTags(wordsOnly), maxDepth: MAX_DEPTH, maxAliases: 0 } as const;

/** Parsers differ in where a tab or an anchor may stand, and in what begins with `---` or `%` and is indented. */
const UNUSUAL = /[\t&]|^ +(?:---|%)/m;

/**
 * The documents of a text, several times as fast as by the parser that keeps where everything stands.
 *
 * @returns undefined: there is a mistake in it, or something out of the ordinary
 */
export function quickDocuments(text: string): readonly unknown[] | undefined {
  if (UNUSUAL.test(text)) return undefined;
  try {
    const documents = loadAll(text, OPTIONS).map(boundedTree);
    return documents.every((document) => typeof document === "object") ? documents : undefined;
  } catch {
    return undefined;
  }
}
