/** How an answer is printed: -o of every command. */

import { isObject } from "@fairlead/base";
import { choice, type OptionSpec } from "./command.ts";
import type { Context } from "./context.ts";
import { UsageError } from "./errors.ts";

/** `-o`, for commands whose answer is data. */
export const outputOption = choice(["table", "json", "yaml"], "table", "How to print the answer.", { short: "o" });

const JSON_PATH = "jsonpath=";

type ListFormat = "table" | "wide" | "name" | "json" | "yaml" | `${typeof JSON_PATH}${string}`;

const LIST_FORMATS = ["table", "wide", "name", "json", "yaml", JSON_PATH] as const;

/** `-o`, for commands whose answer is a list of things with names. */
export const listOption: OptionSpec<ListFormat> = {
  short: "o",
  placeholder: "table|wide|name|json|yaml|jsonpath=TEMPLATE",
  help: "How to print the answer: name is names only, one a line; jsonpath is kubectl's, without filters.",
  choices: LIST_FORMATS,
  defaultText: "table",
  read: (texts) => {
    const given = texts.at(-1) ?? "table";
    if (given.startsWith(JSON_PATH)) return `${JSON_PATH}${given.slice(JSON_PATH.length)}`;
    return LIST_FORMATS.find((one) => one === given) ?? "table";
  },
};

/** What of an answer that is a list is printed for people. */
interface ListTexts {
  readonly text: (wide: boolean) => string;
  readonly names: readonly string[];
}

/**
 * Prints such an answer.
 *
 * @param data only JSON values
 */
export async function printList(
  format: ListFormat,
  data: unknown,
  { text, names }: ListTexts,
  context: Pick<Context, "out">,
): Promise<void> {
  if (format === "name") context.out(names.map((one) => `${one}\n`).join(""));
  else if (format === "wide") context.out(text(true));
  else if (format === "table" || format === "json" || format === "yaml")
    await print(format, data, () => text(false), context);
  else context.out(jsonPathText(format.slice(JSON_PATH.length), data));
}

export type OutputFormat = ReturnType<typeof outputOption.read>;

/**
 * Prints an answer: as it is for programs, or the text made of it for people.
 *
 * @param data only JSON values
 */
export async function print(
  format: OutputFormat,
  data: unknown,
  forPeople: () => string,
  { out }: Pick<Context, "out">,
): Promise<void> {
  if (format === "table") out(forPeople());
  else if (format === "json") out(jsonText(data));
  else out(await yamlText(data));
}

function jsonText(data: unknown): string {
  return `${JSON.stringify(data, undefined, 2)}\n`;
}

async function yamlText(data: unknown): Promise<string> {
  const { stringify } = await import("yaml");
  return stringify(data, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** What a template makes of an answer: `{.services[*].service}`, `{range [*]}{.node}{"\\n"}{end}`. */
export function jsonPathText(template: string, data: unknown): string {
  const parts = partsOf(template);
  const { text, at } = rendered(parts, 0, data, template);
  if (at < parts.length) throw wrong(template, "{end} without {range}");
  return text;
}

type Part = { readonly text: string } | { readonly path: string } | { readonly range: string } | "end";

function partsOf(template: string): readonly Part[] {
  const pieces = template.match(/\{(?:"(?:[^"\\]|\\.)*"|[^{}"])*\}|[^{}]+|[{}]/g) ?? [];
  return pieces.map((piece): Part => {
    if (piece === "{" || piece === "}") throw wrong(template, "a brace has no counterpart");
    if (!piece.startsWith("{")) return { text: piece };
    const inner = piece.slice(1, -1).trim();
    if (inner === "end") return "end";
    const [, range] = /^range\s+(.+)$/.exec(inner) ?? [];
    if (range !== undefined) return { range };
    return inner.startsWith('"') ? { text: literal(inner, template) } : { path: inner };
  });
}

function literal(quoted: string, template: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    throw wrong(template, `${quoted} is not a string`);
  }
}

/** @returns at: the part behind the last one that was used */
function rendered(parts: readonly Part[], from: number, data: unknown, template: string) {
  let text = "";
  let at = from;
  for (let part = parts[at]; part !== undefined && part !== "end"; part = parts[at]) {
    at += 1;
    if ("text" in part) text += part.text;
    else if ("path" in part) text += valuesAt(part.path, data, template).map(shown).join(" ");
    else {
      const start = at;
      // Also where there is no element: what is behind {end} comes next.
      at = rendered(parts, start, undefined, template).at;
      if (parts[at] !== "end") throw wrong(template, "{range} without {end}");
      for (const one of valuesAt(part.range, data, template)) text += rendered(parts, start, one, template).text;
      at += 1;
    }
  }
  return { text, at };
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

const STEP = /^(?:\.([\w-]+|\*)|\['([^']*)'\]|\[(-?\d+|\*)\])/;

function valuesAt(path: string, data: unknown, template: string): readonly unknown[] {
  let values: readonly unknown[] = [data];
  for (let rest = path.replace(/^[$@]/, "").replace(/^\.(?=\[|$)/, ""); rest !== ""; ) {
    const [step, dotted, quoted, index] = STEP.exec(rest) ?? [];
    if (step === undefined) throw wrong(template, `${rest} is not one of .FIELD, ['FIELD'], [NUMBER], [*]`);
    const key = dotted ?? quoted ?? index ?? "";
    values = values.flatMap((value) => childrenOf(value, key, quoted === undefined && key === "*"));
    rest = rest.slice(step.length);
  }
  return values.filter((value) => value !== undefined && value !== null);
}

function childrenOf(value: unknown, key: string, all: boolean): readonly unknown[] {
  if (Array.isArray(value)) return all ? value : [value.at(Number(key))];
  if (!isObject(value)) return [];
  return all ? Object.values(value) : [Object.hasOwn(value, key) ? value[key] : undefined];
}

function wrong(template: string, why: string): UsageError {
  return new UsageError(`--output=jsonpath=${template}: ${why}; such as jsonpath='{range [*]}{.node}{"\\n"}{end}'`);
}
