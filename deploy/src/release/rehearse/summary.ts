import { markdownTable } from "@fairlead/tooling/markdown-table";
import type { StepResult } from "./rehearsal.ts";

/** How users get a release, and how large its packages are, as tables in Markdown; empty where no step has any. */
export function summaryText(results: readonly StepResult[]): string {
  const installs = results.flatMap(({ installs = [] }) => installs);
  const bundles = results.flatMap(({ bundles = [] }) => bundles);
  const tables = [
    table(
      ["installed by", "version", "what ran"],
      installs.map(({ by, version = "", ran }) => [by, version, ran]),
    ),
    table(
      ["for a browser, with all its exports", "minified", "gzipped"],
      bundles.map(({ name, minified, gzipped }) => [name, kilobytes(minified), kilobytes(gzipped)]),
    ),
  ];
  return tables.filter((text) => text !== "").join("\n");
}

type Row = readonly string[];

function table(head: Row, rows: readonly Row[]): string {
  return rows.length === 0 ? "" : `${markdownTable(head, rows).join("\n")}\n`;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
