/** The programs of coreutils by which a node is read, for images that have none: the one made of packages. */

import { readdir, readFile, readlink } from "node:fs/promises";
import { machine, release } from "node:os";
import { errorText } from "@fairlead/base";
import { type Argv, CommandError, type Runner, type RunResult } from "@fairlead/kernel";

/** What each prints for its arguments, as far as this tool calls them. They throw the errors of node:fs. */
const PROGRAMS: ReadonlyMap<string, (...args: readonly string[]) => Promise<string>> = new Map([
  ["cat", (path = "") => readFile(path, "utf8")],
  ["ls", async (path = "") => (await readdir(path)).map((name) => `${name}\n`).join("")],
  ["readlink", async (...args) => `${await readlink(args.at(-1) ?? "")}\n`],
  ["uname", async () => `${release()} ${machine()}\n`],
]);

export function isOfCoreutils(program: string | undefined): boolean {
  return PROGRAMS.has(program ?? "");
}

/**
 * What such a program prints.
 *
 * @throws CommandError as where the program itself fails
 */
export async function printedHere(argv: Argv): Promise<RunResult> {
  const [program, ...args] = argv;
  const print = PROGRAMS.get(program);
  if (print === undefined) throw new CommandError({ argv, reason: "not-found", stderr: `${program} is not known` });
  try {
    return { stdout: await print(...args), stderr: "" };
  } catch (error) {
    throw new CommandError({ argv, reason: "exit", exitCode: 1, stderr: `${program}: ${errorText(error)}` });
  }
}

/** The runner, with another way to what these programs print where they are not there. */
export function withCoreutils(runner: Runner, instead: (argv: Argv) => Promise<RunResult>): Runner {
  return {
    async run(argv, options) {
      try {
        return await runner.run(argv, options);
      } catch (error) {
        if (!isOfCoreutils(argv[0]) || !isNotFound(error)) throw error;
        // The container of another proxy may have neither.
        return await instead(argv).catch((second: unknown) => {
          throw isNotFound(second) ? error : second;
        });
      }
    },
    stream: (argv, options) => runner.stream(argv, options),
  };
}

function isNotFound(error: unknown): boolean {
  return error instanceof CommandError && error.reason === "not-found";
}
