// A file with one importer, in its own folder, is part of that importer. Pure; check-tree.mjs reads.
import { dirname, join } from "node:path/posix";

const SOURCE = /\/src\/.*\.tsx?$/;
/** A package's surface holds nothing else, and programs are started by their path. */
const NO_HOME = /(?:^|\/)(?:index|main|[\w-]+-main)\.tsx?$/;
const IMPORT = /(?:\bfrom|\bimport|\bimport\() ?"(\.[^"]+)"/g;
const LINES = 40;
const LONGEST = 400;

/** @param {ReadonlyMap<string, string>} texts TypeScript files by their path @returns {string[]} */
export function smallFiles(texts) {
  const importers = new Map();
  for (const [file, text] of texts) {
    if (!SOURCE.test(file)) continue;
    for (const [, specifier] of text.matchAll(IMPORT)) {
      const imported = join(dirname(file), specifier);
      importers.set(imported, (importers.get(imported) ?? new Set()).add(file));
    }
  }
  return Array.from(texts).flatMap(([file, text]) => {
    const [importer, ...others] = importers.get(file) ?? [];
    const lines = linesOf(text);
    if (!SOURCE.test(file) || NO_HOME.test(file) || importer === undefined || others.length > 0) return [];
    if (dirname(importer) !== dirname(file) || NO_HOME.test(importer)) return [];
    if (lines >= LINES || lines + linesOf(texts.get(importer) ?? "") > LONGEST) return [];
    return [`${file}: ${lines} lines that only ${importer} imports; move them there`];
  });
}

function linesOf(text) {
  return text.split("\n").length - 1;
}
