import type { Finding } from "./stage.ts";

const NAME = 17;
const REQUEST = 42;

export const tableHead = `  ${"CHECK".padEnd(NAME)}${"REQUEST".padEnd(REQUEST)}SEEN`;

/** One line of the table; a name that the line before had already is left out. */
export function tableLine({ name, request, seen, ok }: Finding, before: Finding | undefined): string {
  const shown = before?.name === name ? "" : name;
  return `${ok ? "✓" : "✗"} ${shown.padEnd(NAME)}${request.padEnd(REQUEST)}${seen}`;
}
