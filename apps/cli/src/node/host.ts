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

/** One GET of a port of this host's loopback. */
export async function askLoopback(port: number, path: string): Promise<HttpAnswer> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
  const { answerText } = await import("../cluster/pod-port.ts");
  return { status: response.status, text: await answerText(response.body ?? [], path) };
}

async function load(): Promise<Runner> {
  const { createRunner } = await import("@fairlead/kernel");
  return createRunner();
}
