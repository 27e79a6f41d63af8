/** Texts of answers: tables, findings, counts. */

import { stripVTControlCharacters } from "node:util";
import type { ModeFinding } from "@fairlead/inspect";
import type { Style } from "./terminal.ts";

/** Columns side by side as kubectl prints them; the last one is not padded. */
export function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head.map((title) => title.toUpperCase()), ...rows.map((row) => row.map(inOneLine))];
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

/** A cell makes no rows of its own. */
function inOneLine(cell: string): string {
  return cell.replaceAll(/[\n\t]/g, codeOf);
}

function width(cell: string): number {
  return stripVTControlCharacters(cell).length;
}

/** One thing that was looked at, of a survey or of a change of the mode. */
export type Finding = Omit<ModeFinding, "services">;

/** A line for each, with a sign, and what can be done about it. */
export function findingsText(findings: readonly Finding[], style: Style): string {
  const signs = { fits: style.good("✓"), differs: style.warn("!"), blocks: style.bad("✗"), unknown: style.warn("?") };
  return findings
    .map(({ topic, state, found, advice }) => {
      const what = advice === undefined ? "" : `\n    ${style.bold("→")} ${advice}`;
      return `${signs[state]} ${topic}: ${found}${what}\n`;
    })
    .join("");
}

/** The last line of an answer: `OK: 3 nodes`, `FAIL: 1 of 3 nodes; next: …`. */
export function verdictText(isGood: boolean, what: string, next: string, style: Style): string {
  return isGood ? `${style.good("OK")}: ${what}\n` : `${style.bad("FAIL")}: ${what}; next: ${next}\n`;
}

/** A Gateway that owns a Service, and where to read on. */
export function gatewayText(gateway: string, route?: string): string {
  return `Gateway ${gateway}${route === undefined ? "" : `, ${route}`}; its routes: fairlead explain gateway ${gateway}`;
}

/** `1 node`, `2 nodes` */
export function counted(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

/** The first few, and how many more there are: `a, b and 2 more`. */
export function firstOf(all: readonly string[], most: number, separator = ", "): string {
  const more = all.length > most ? ` and ${all.length - most} more` : "";
  return `${all.slice(0, most).join(separator)}${more}`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** `17 B`, `1.2 MiB` */
export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

/** Text for a terminal: what it would obey (escape sequences, bells) is written as `\u001b`; lines and tabs stay. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, escaped);
}

/** The same of a text whose words are set off (`Style`): those few sequences stay. */
export function printableStyled(text: string): string {
  return text.replaceAll(STYLED, (found, style: string | undefined) => style ?? escaped(found));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: bold, dim, red, green, yellow, and their ends
const STYLED = /(\u001b\[(?:1|2|22|31|32|33|39)m)|[\p{Cc}\p{Zl}\p{Zp}]/gu;

function escaped(character: string): string {
  return character === "\n" || character === "\t" ? character : codeOf(character);
}

function codeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
