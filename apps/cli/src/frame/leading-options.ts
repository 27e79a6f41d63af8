import type { Command } from "./command.ts";

/**
 * A command line whose options stand before the command (`--context NAME status`), as kubectl takes them, with the
 * command first. One that begins with its command, or has none, is given back as it is.
 */
export function commandFirst(argv: readonly string[], commands: readonly Command[]): readonly string[] {
  if (argv[0]?.startsWith("-") !== true) return argv;
  const takeValues = new Set(commands.flatMap(({ options }) => Object.entries(options).flatMap(valueOptions)));
  const isCommand = (word: string) => commands.some(({ name }) => name === word);
  const at = argv.findIndex((word, index) => isCommand(word) && !takeValues.has(argv[index - 1] ?? ""));
  const [command] = at < 0 ? [] : argv.slice(at, at + 1);
  return command === undefined ? argv : [command, ...argv.slice(0, at), ...argv.slice(at + 1)];
}

/** `--namespace`, `-n`: the word behind one of them is its value. */
function valueOptions([name, { short, placeholder }]: [string, Command["options"][string]]): readonly string[] {
  if (placeholder === undefined) return [];
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}
