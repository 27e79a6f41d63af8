import type { Runner } from "@fairlead/kernel";

/** The runner of processes, loaded with the first one: most commands start none. */
export function lazyRunner(): Runner {
  const loaded = async () => (await import("@fairlead/kernel")).createRunner();
  return {
    run: async (...of) => (await loaded()).run(...of),
    async *stream(...of) {
      yield* (await loaded()).stream(...of);
    },
  };
}
