import { errorChainText } from "@fairlead/base";
import type { Log } from "../log/log.ts";

/** Milliseconds after SIGTERM in which the process is gone, whatever it was in the middle of. */
const patience = 1_900;

/** Aborts on SIGTERM and SIGINT. Rules stay as they are, so there is nothing that must be waited for. */
export function stopSignal(log: Log): AbortSignal {
  const stop = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      log.verbose(1, "Told to stop", { signal: name });
      stop.abort();
      setTimeout(() => process.exit(0), patience).unref();
    });
  }
  return stop.signal;
}

/**
 * Takes SIGUSR2 from now on, by which an operator asks for a full sync: the kernel lets root and the own user alone send it.
 * Unhandled it would end the process, so this comes before anybody can know of it.
 *
 * @returns has a function called whenever it comes; what came before is covered by the first sync, which is full
 */
export function fullSyncSignal(log: Log): (ask: () => void) => void {
  let told = () => {};
  process.on("SIGUSR2", () => {
    log.verbose(1, "Asked for a full sync", { signal: "SIGUSR2" });
    told();
  });
  return (ask) => {
    told = ask;
  };
}

/** What nobody handles leaves an unknown state: better to be started again. */
export function failOnUnhandled(log: Log): void {
  const fail = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined;
    log.error("Unhandled error", { error: errorChainText(error), ...(stack === undefined ? {} : { stack }) });
    process.exit(1);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
}
