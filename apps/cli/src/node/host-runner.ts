import type { Runner } from "@fairlead/kernel";

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

async function load(): Promise<Runner> {
  const { createRunner } = await import("@fairlead/kernel");
  return createRunner();
}
