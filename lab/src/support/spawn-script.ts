import { createInterface } from "node:readline";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";
import { RUN_VARIABLE } from "./run-variable.ts";

/**
 * Runs a script of the test ground inside a namespace, with its output line by line. It ends with its standard input.
 *
 * @param file a path of TypeScript that Node runs as it is
 * @param flags Node's own; `--conditions=@fairlead/source` where it imports packages
 */
export function spawnScript(
  { argvPrefix, env }: Pick<NetworkNamespace, "argvPrefix"> & Partial<Pick<NetworkNamespace, "env">>,
  file: string,
  args: readonly string[] = [],
  flags: readonly string[] = [],
) {
  const { PATH = "/usr/sbin:/usr/bin:/sbin:/bin", NODE_COMPILE_CACHE, [RUN_VARIABLE]: run } = process.env;
  const [program = "nsenter", ...prefix] = argvPrefix;
  const child = execa(program, [...prefix, process.execPath, "--no-warnings", ...flags, file, ...args], {
    stdin: "pipe",
    buffer: { stdout: false, stderr: true },
    reject: false,
    // What a test runner sets for its own workers is not for it.
    extendEnv: false,
    env: {
      PATH,
      ...env,
      ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }),
      ...(run !== undefined && { [RUN_VARIABLE]: run }),
    },
  });
  return { child, lines: createInterface({ input: child.stdout }) };
}

/** For a script that imports packages of the workspace. */
export const FROM_SOURCES: readonly string[] = ["--conditions=@fairlead/source"];
