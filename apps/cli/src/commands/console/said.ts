import { RequestError } from "@fairlead/console";
import type { Command } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";

/**
 * What a command prints with `-o json`: the page says nothing that the command does not.
 *
 * @param options by long name; undefined: not given
 * @throws RequestError with the command's own words
 */
export async function saidBy<T>(
  command: Command,
  args: readonly string[],
  options: Readonly<Record<string, readonly string[] | undefined>>,
  context: Context,
): Promise<T> {
  let printed = "";
  const out = (text: string) => {
    printed += text;
  };
  const given = Object.entries({ ...options, output: ["json"] });
  const texts = new Map(given.flatMap(([name, values]) => (values === undefined ? [] : [[name, values] as const])));
  try {
    await command.run(args, texts, { ...context, out, warn: () => {}, progress: (_what, work) => work() });
  } catch (error) {
    if (error instanceof UsageError || error instanceof CommandFailure) throw new RequestError(400, error.message);
    throw error;
  }
  return JSON.parse(printed);
}
