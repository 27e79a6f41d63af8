type Row = readonly string[];

/** A table in Markdown, line by line, with columns as wide as the formatter makes them. */
export function markdownTable(head: Row, rows: readonly Row[]): readonly string[] {
  const widths = head.map((_, at) => Math.max(3, ...[head, ...rows].map((row) => row[at]?.length ?? 0)));
  const line = (row: Row) => `| ${widths.map((width, at) => (row[at] ?? "").padEnd(width)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)];
}
