import { describeError, type Log } from "../log/log.ts";

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

/** What nobody handles leaves an unknown state: better to be started again. */
export function failOnUnhandled(log: Log): void {
  const fail = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined;
    log.error("Unhandled error", { error: describeError(error), ...(stack === undefined ? {} : { stack }) });
    process.exit(1);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
}
