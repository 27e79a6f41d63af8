/** Scripts of this repository as processes inside namespaces, which answer lines. */

import { once } from "node:events";
import { createInterface } from "node:readline";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { execa } from "execa";

/** A script of the test ground at work inside a namespace; its side of it is `answerLines`. */
export interface Script extends AsyncDisposable {
  readonly ready: string;
  ask(line: string): Promise<string>;
  /** Ends it. May be called twice. */
  stop(): Promise<void>;
}

type Place = Pick<NetworkNamespace, "argvPrefix"> & Partial<Pick<NetworkNamespace, "env">>;

/**
 * Starts a script and waits until it is ready. It ends with its standard input: with `stop`, or with this process.
 *
 * @param file a path of TypeScript that Node runs as it is
 * @param flags Node's own; `--conditions=@fairlead/source` where it imports packages
 */
export async function startScript(
  namespace: Place,
  file: string,
  args: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<Script> {
  const { child, lines } = spawnScript(namespace, file, args, flags);
  const ended = child.then(({ stderr }): never => {
    throw new Error(`${file} ended: ${stderr}`);
  });
  // Heeded where an answer is waited for.
  ended.catch(() => {});
  const next = async () => {
    const [line] = await Promise.race([once(lines, "line"), ended]);
    return String(line);
  };
  const ready = await next();
  let last: Promise<unknown> = Promise.resolve();
  const stop = async () => {
    child.stdin.end();
    child.kill("SIGKILL");
    await child;
  };
  return {
    ready,
    ask: (line) => {
      const answer = last.then(() => {
        const answered = next();
        child.stdin.write(`${line}\n`);
        return answered;
      });
      last = answer.catch(() => {});
      return answer;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/**
 * Runs a script of the test ground inside a namespace, with its output line by line. It ends with its standard input.
 *
 * @param file a path of TypeScript that Node runs as it is
 * @param flags Node's own; `--conditions=@fairlead/source` where it imports packages
 */
export function spawnScript(
  { argvPrefix, env }: Place,
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

/** In the environment of every process that a run starts: the run's id. */
export const RUN_VARIABLE = "FAIRLEAD_E2E_RUN";

/**
 * For a script that `startScript` runs: says that it is ready, and answers each line of standard input with one. Ends
 * the process with standard input, so that it never outlives the process that started it.
 */
export function answerLines(answer: (line: string) => string | Promise<string>, ready = "ready"): void {
  process.stdout.write(`${ready}\n`);
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (line) => process.stdout.write(`${await answer(line)}\n`));
  lines.on("close", () => process.exit(0));
}
