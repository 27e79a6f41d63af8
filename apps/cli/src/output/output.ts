import type { Context } from "../frame/context.ts";
import { choice } from "../frame/options.ts";

/** `-o`, for commands whose answer is data. */
export const outputOption = choice(["table", "json", "yaml"], "table", "How to print the answer.", { short: "o" });

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
