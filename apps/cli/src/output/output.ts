import type { Context } from "../frame/context.ts";
import { choice, type OptionSpec } from "../frame/options.ts";

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
  readonly wide: () => string;
  readonly table: () => string;
  readonly names: readonly string[];
}

/**
 * Prints such an answer.
 *
 * @param data only JSON values
 * @throws UsageError for a template that is none
 */
export async function printList(
  format: ListFormat,
  data: unknown,
  { wide, table, names }: ListTexts,
  context: Pick<Context, "out">,
): Promise<void> {
  if (format === "name") context.out(names.map((one) => `${one}\n`).join(""));
  else if (format === "wide") context.out(wide());
  else if (format === "table" || format === "json" || format === "yaml") await print(format, data, table, context);
  else {
    const { jsonPathText } = await import("./json-path.ts");
    context.out(jsonPathText(format.slice(JSON_PATH.length), data));
  }
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
