/** This host: its programs and its loopback. */

import type { Runner } from "@fairlead/kernel";
import type { HttpAnswer } from "../frame/context.ts";

/** The runner of processes on this host, loaded with the first one: most commands start none. */
export function lazyRunner(): Runner {
  let runner: Promise<Runner> | undefined;
  const loaded = () => {
    runner ??= load();
    return runner;
  };
  return {
    run: async (...of) => (await loaded()).run(...of),
    async *stream(...of) {
      yield* (await loaded()).stream(...of);
    },
  };
}

/** Milliseconds that an agent gets to answer. */
export const PATIENCE_MS = 15_000;

export async function askLoopback(port: number, path: string): Promise<HttpAnswer> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
  const { answerText } = await import("../cluster/pods.ts");
  return { status: response.status, text: await answerText(response.body ?? [], path) };
}

async function load(): Promise<Runner> {
  const [{ createRunner }, { printedHere, withCoreutils }] = await Promise.all([
    import("@fairlead/kernel"),
    import("./coreutils.ts"),
  ]);
  return withCoreutils(createRunner(), printedHere);
}

/** What one `fairlead` calls another one with, in the pod of a node's agent. */

/** It prints the state of the pod's node as JSON, or the parts of it that follow: one start in place of dozens. */
export const STATE = "__state";

/** It prints the connections that the kernel tracks, a line of JSON each; with `--follow` then what becomes of them. */
export const CONNECTIONS = "__connections";

/** It prints what a program of coreutils would print, which follows with its arguments: the image may have none. */
export const COREUTILS = "__coreutils";

/** It asks the agent of its network namespace for a full sync. */
export const FULL_SYNC = "__full-sync";
