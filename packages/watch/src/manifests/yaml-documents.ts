import { type Document, isScalar, parseAllDocuments, visit } from "yaml";
import { MAX_DEPTH, mebibytes } from "../limits.ts";
import { boundedTree } from "./bounded-tree.ts";
import { ManifestSyntaxError } from "./syntax-error.ts";
import type { Piece } from "./yaml-pieces.ts";
import { quickDocuments } from "./yaml-quick.ts";

/** Aliases that one document may resolve: enough for anchors, not for a "billion laughs". */
const MAX_ALIAS_COUNT = 100;
/**
 * Characters that are read in one go; what is out of the ordinary at 2 MB/s and with two hundred times as much memory.
 * An EndpointSlice of 1,000 endpoints has some 300 kB.
 */
export const MAX_PIECE = 2 ** 19;

/**
 * The documents of a piece. Nothing stops it half way.
 *
 * @throws ManifestSyntaxError
 */
export function documentsOf(piece: Piece): readonly unknown[] {
  const { text, line } = piece;
  if (text.length > MAX_PIECE) {
    throw new ManifestSyntaxError(
      `a document of ${mebibytes(text.length)}; YAML is read up to ${mebibytes(MAX_PIECE)} in one piece: ` +
        "separate documents by ---, or write JSON",
      line + 1,
    );
  }
  return quickDocuments(text) ?? explainedDocuments(piece);
}

/** By the parser that says where a mistake is, and knows every tag. */
export function explainedDocuments({ text, line }: Piece): readonly unknown[] {
  try {
    // Its own search for repeated keys is quadratic.
    const options = { merge: true, prettyErrors: true, uniqueKeys: false, logLevel: "silent" } as const;
    return [...parseAllDocuments(text, options)].map((document) => plain(document, text, line));
  } catch (error) {
    if (error instanceof RangeError) throw new ManifestSyntaxError(`nested deeper than ${MAX_DEPTH} levels`, line + 1);
    throw error;
  }
}

function plain(document: Document.Parsed, text: string, lineOffset: number): unknown {
  const problem = document.errors[0];
  if (problem !== undefined) {
    if (problem.message.includes("call stack")) throw new RangeError(problem.message);
    const at = problem.linePos?.[0];
    const message = (problem.message.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, "");
    throw at === undefined
      ? new ManifestSyntaxError(message)
      : new ManifestSyntaxError(message, at.line + lineOffset, at.col);
  }
  const repeated = repeatedKey(document);
  if (repeated !== undefined) {
    const before = text.slice(0, repeated).split("\n");
    throw new ManifestSyntaxError(
      "Map keys must be unique",
      before.length + lineOffset,
      (before.at(-1) ?? "").length + 1,
    );
  }
  try {
    return boundedTree(document.toJS({ maxAliasCount: MAX_ALIAS_COUNT }));
  } catch (error) {
    if (error instanceof RangeError) throw error;
    // Not base's `errorText`: a thread of its own runs this from source as well, where no package is built.
    throw error instanceof ManifestSyntaxError
      ? new ManifestSyntaxError(error.message, lineOffset + 1)
      : new ManifestSyntaxError(error instanceof Error ? error.message : String(error));
  }
}

/** Where the second one stands. */
function repeatedKey(document: Document.Parsed): number | undefined {
  let found: number | undefined;
  visit(document, {
    Map: (_, { items }) => {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key) || key.value === "<<") continue;
        if (seen.has(key.value)) found ??= key.range?.[0] ?? 0;
        seen.add(key.value);
      }
      return found === undefined ? undefined : visit.BREAK;
    },
  });
  return found;
}
