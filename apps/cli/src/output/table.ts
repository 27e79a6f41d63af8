import { stripVTControlCharacters } from "node:util";

/** Columns side by side as kubectl prints them; the last one is not padded. */
export function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head.map((title) => title.toUpperCase()), ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => width(line[column] ?? ""))));
  const text = lines.map((line) =>
    line
      .map((cell, column) => pad(cell, widths[column] ?? 0))
      .join("   ")
      .trimEnd(),
  );
  return `${text.join("\n")}\n`;
}

function pad(cell: string, to: number): string {
  return cell + " ".repeat(Math.max(0, to - width(cell)));
}

function width(cell: string): number {
  return stripVTControlCharacters(cell).length;
}
