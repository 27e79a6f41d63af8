import type { Row, Unit } from "./rows.ts";

const HEADER = ["", "Fairlead", "kube-proxy", "ratio", "tools alone"];

/** A Markdown table. */
export function markdownTable(rows: readonly Row[]): string {
  const lines = [HEADER, ["---", "--:", "--:", "--:", "--:"], ...rows.map(cells)];
  return lines.map((line) => `| ${line.join(" | ")} |\n`).join("");
}

/** The same with columns of one width, for a terminal. */
export function textTable(rows: readonly Row[]): string {
  const lines = [HEADER, ...rows.map(cells)];
  const widths = HEADER.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const text = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
  return lines.map((line) => `${line.map(text).join("  ").trimEnd()}\n`).join("");
}

function cells({ label, unit, fairlead, kubeProxy, unfinished, ratio, bare }: Row): readonly string[] {
  const value = (number: number | undefined) => (number === undefined ? "" : quantity(number, unit));
  const [more, less] = unfinished ? ["> ", "< "] : ["", ""];
  const share = ratio === undefined ? "" : `${less}${ratio.toFixed(2)}`;
  return [label, value(fairlead), `${more}${value(kubeProxy)}`, share, value(bare)];
}

/** A number with its unit, as exact as it is worth. */
export function quantity(value: number, unit: Unit): string {
  switch (unit) {
    case "ms":
    case "CPU ms":
      return value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
    case "MB":
      return `${value.toFixed(0)} MB`;
    case "bytes":
      return bytes(value);
    case "count":
      return value.toFixed(Number.isInteger(value) ? 0 : 1);
  }
}

function bytes(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} MB`;
  return value >= 1e4 ? `${(value / 1e3).toFixed(0)} kB` : `${value.toFixed(0)} B`;
}
