import { type Command, type CommandFacts, defineCommand } from "../../frame/command.ts";
import { SHELLS } from "./shells.ts";

/** @param all every command, this one included: asked when the script is made */
export function completionCommand(all: () => readonly Command[]): Command {
  return defineCommand(FACTS, async () => {
    const { completionRun } = await import("./run.ts");
    return { run: completionRun(all()) };
  });
}

const FACTS = {
  name: "completion",
  summary: "Print a completion script for a shell",
  description: "The script is self-contained. It completes commands, options, their values and files.",
  arguments: [{ name: "shell", help: "bash, zsh or fish", choices: SHELLS }],
  options: {},
  examples: [
    { line: "source <(fairlead completion bash)", what: "For this bash, or in ~/.bashrc" },
    { line: "source <(fairlead completion zsh)", what: "For this zsh, after compinit" },
    { line: "fairlead completion fish > ~/.config/fish/completions/fairlead.fish", what: "For fish" },
  ],
} as const satisfies CommandFacts;
