import { bashCompletion } from "../../completion/bash.ts";
import { completionsOf } from "../../completion/facts.ts";
import { fishCompletion } from "../../completion/fish.ts";
import { zshCompletion } from "../../completion/zsh.ts";
import type { Command, CommandInput, ExitCode } from "../../frame/command.ts";
import type { Context } from "../../frame/context.ts";
import { UsageError } from "../../frame/errors.ts";
import type { OptionSpecs } from "../../frame/options.ts";
import { SHELLS } from "./shells.ts";

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

/** @param commands what the script offers */
export function completionRun(commands: readonly Command[]) {
  return async ({ arguments: [name] }: CommandInput<OptionSpecs>, { out }: Context): Promise<ExitCode> => {
    const shell = SHELLS.find((one) => one === name);
    if (shell === undefined) throw new UsageError(`${JSON.stringify(name)}: must be ${SHELLS.join(", ")}`);
    out(SCRIPTS[shell](completionsOf(commands)));
    return 0;
  };
}
