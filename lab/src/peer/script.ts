import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { FROM_SOURCES, spawnScript } from "../support/spawn-script.ts";

/** A script of ours that runs inside a namespace and speaks in lines; it ends with its standard input. */
export interface Script extends AsyncDisposable {
  /** Says a line. */
  notify(line: string): void;
  /**
   * The next line that it says.
   *
   * @throws Error with what it said on standard error, when it has ended
   */
  hear(): Promise<string>;
  end(): Promise<void>;
}

/** Runs a file of this test ground with the sources of the workspace's packages. */
export function startScript(namespace: NetworkNamespace, file: string, args: readonly string[]): Script {
  const spawned = spawnScript(namespace, file, args, FROM_SOURCES);
  const { child } = spawned;
  const lines = spawned.lines[Symbol.asyncIterator]();
  const end = async () => {
    child.stdin.end();
    await child;
  };
  return {
    notify: (line) => void child.stdin.write(`${line}\n`),
    hear: async () => {
      const { done, value } = await lines.next();
      if (done !== true) return value;
      const { stderr } = await child;
      throw new Error(`${file} ended: ${stderr}`);
    },
    end,
    [Symbol.asyncDispose]: end,
  };
}
