import type { CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { print } from "../../output/output.ts";
import { version, versionText } from "../../version.ts";
import type { versionOptions } from "./options.ts";

export async function run({ options }: CommandInput<typeof versionOptions>, context: Context): Promise<ExitCode> {
  await print(options.output, { version }, () => versionText, context);
  return 0;
}
