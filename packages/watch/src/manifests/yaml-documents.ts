import { treeProblem } from "@fairlead/base";
import { CORE_SCHEMA, loadAll, mergeTag, YAMLException } from "js-yaml";
import { MAX_DEPTH, MAX_OBJECT_BYTES, mebibytes } from "../limits.ts";
import { ManifestSyntaxError } from "./syntax-error.ts";
import type { Piece } from "./yaml-pieces.ts";

/** Aliases that one document may have: enough for anchors, not for a "billion laughs". */
const MAX_ALIASES = 100;

/**
 * Characters that are read in one go, in which nothing else runs. An EndpointSlice of 1,000 endpoints has some 300 kB.
 * The time is linear in the length, whatever the text says: 50 to 100 ms of CPU at most, 200 ms for the first one.
 */
export const MAX_PIECE = 2 ** 19;

/** The parser counts a scalar as a level; `treeProblem` does not. */
const OPTIONS = { schema: CORE_SCHEMA.withTags(mergeTag), maxDepth: MAX_DEPTH + 1, maxAliases: MAX_ALIASES } as const;

/**
 * The documents of a piece.
 *
 * @throws ManifestSyntaxError
 */
export function documentsOf({ text, line }: Piece): readonly unknown[] {
  if (text.length > MAX_PIECE) {
    throw new ManifestSyntaxError(
      `a document of ${mebibytes(text.length)}; YAML is read up to ${mebibytes(MAX_PIECE)} in one piece: ` +
        "separate documents by ---, or write JSON",
      line + 1,
    );
  }
  const documents = parsed(text, line);
  for (const document of documents) {
    const problem = treeProblem(document, { depth: MAX_DEPTH, size: MAX_OBJECT_BYTES });
    if (problem !== undefined) throw new ManifestSyntaxError(problem, line + 1);
  }
  return documents;
}

function parsed(text: string, line: number): readonly unknown[] {
  try {
    return loadAll(text, OPTIONS);
  } catch (error) {
    throw error instanceof YAMLException ? problemOf(error, line) : error;
  }
}

function problemOf({ reason, mark }: YAMLException, lineOffset: number): ManifestSyntaxError {
  const message = reason.includes("maxDepth") ? `nested deeper than ${MAX_DEPTH} levels` : reason;
  return new ManifestSyntaxError(message, lineOffset + (mark?.line ?? 0) + 1, mark && mark.column + 1);
}
