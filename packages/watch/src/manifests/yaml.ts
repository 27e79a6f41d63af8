import { type Document, parseAllDocuments } from "yaml";
import { breather } from "../breathe.ts";
import { errorText } from "../raw.ts";
import { ManifestSyntaxError } from "./syntax-error.ts";

/** Aliases that one document may resolve: enough for anchors, not for a "billion laughs". */
const maxAliasCount = 100;

/**
 * All documents of a YAML text. Others have their turn between two documents; a single one of several megabytes, such
 * as a big `kind: List`, is read in one go (JSON isn't).
 *
 * @throws ManifestSyntaxError
 */
export async function parseYaml(content: Uint8Array): Promise<unknown[]> {
  const breathe = breather();
  const documents: unknown[] = [];
  let line = 0;
  for (const text of splitDocuments(Buffer.from(content).toString("utf8"))) {
    for (const document of parseAllDocuments(text, { merge: true, prettyErrors: true, logLevel: "silent" })) {
      documents.push(plain(document, line));
    }
    line += text.split("\n").length - 1;
    await breathe();
  }
  return documents;
}

/**
 * Cuts before each line that begins with `---`: such a line begins a document wherever it stands, even in a block of
 * text (YAML 1.2, 9.1.2). Directives belong to the document after them, so a text with any is left whole.
 */
function splitDocuments(text: string): string[] {
  return /^%/m.test(text) ? [text] : text.split(/^(?=---(?:\s|$))/m);
}

function plain(document: Document.Parsed, lineOffset: number): unknown {
  const problem = document.errors[0];
  if (problem !== undefined) {
    const at = problem.linePos?.[0];
    const message = (problem.message.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, "");
    throw at === undefined
      ? new ManifestSyntaxError(message)
      : new ManifestSyntaxError(message, at.line + lineOffset, at.col);
  }
  try {
    return document.toJS({ maxAliasCount });
  } catch (error) {
    throw new ManifestSyntaxError(errorText(error));
  }
}
