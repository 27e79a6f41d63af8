import { parentPort } from "node:worker_threads";
import { ManifestSyntaxError } from "./syntax-error.ts";
import { documentsOf } from "./yaml-documents.ts";
import type { Piece } from "./yaml-pieces.ts";

/** What the thread says of a piece. */
export type Reading =
  | { readonly documents: readonly unknown[] }
  | { readonly problem: string; readonly line: number | undefined; readonly column: number | undefined };

parentPort?.on("message", (piece: Piece) => parentPort?.postMessage(read(piece)));

function read(piece: Piece): Reading {
  try {
    return { documents: documentsOf(piece) };
  } catch (error) {
    if (!(error instanceof ManifestSyntaxError)) throw error;
    return { problem: error.message, line: error.line, column: error.column };
  }
}
