import { errorChainText } from "@fairlead/base";
import type { Log } from "../log/log.ts";

/** Milliseconds after SIGTERM in which the process is gone, whatever it was in the middle of. */
const SHUTDOWN_MS = 1_900;

/** What Node's thread pool may be busy with for as long as a file or a name server wants. */
const POOLED: readonly string[] = ["FSReqPromise", "FSReqCallback", "FileHandleCloseReq", "GetAddrInfoReqWrap"];

/**
 * Ends this process. process.exit waits for the thread pool: a read of a FIFO, or a name server that does not answer,
 * would keep it, and SIGTERM would end nothing.
 */
export async function endProcess(code: number): Promise<void> {
  const busy = process.getActiveResourcesInfo().some((resource) => POOLED.includes(resource));
  // Loaded here only: --version and wrong flags are answered without it.
  if (busy) await (await import("@fairlead/kernel")).exitAtOnce(code);
  else process.exit(code);
}

/** Aborts on SIGTERM and SIGINT. Rules stay as they are, so there is nothing that must be waited for. */
export function stopSignal(log: Log): AbortSignal {
  const stop = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      log.verbose(1, "Received a signal to stop", { signal: name });
      stop.abort();
      setTimeout(() => void endProcess(0), SHUTDOWN_MS).unref();
    });
  }
  return stop.signal;
}

/**
 * Takes SIGUSR2 from now on, by which an operator asks for a full sync: the kernel lets only root and the own user send
 * it. Unhandled it would end the process, so this comes before anybody can know of it.
 *
 * @returns has a function called whenever it comes; what came before is covered by the first sync, which is full
 */
export function fullSyncSignal(log: Log): (ask: () => void) => void {
  let notify = () => {};
  process.on("SIGUSR2", () => {
    log.verbose(1, "Received a signal for a full sync", { signal: "SIGUSR2" });
    notify();
  });
  return (ask) => {
    notify = ask;
  };
}

/** What nobody handles leaves an unknown state: better to be started again. */
export function failOnUnhandled(log: Log): void {
  const fail = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined;
    log.error("Unhandled error", { error: errorChainText(error), ...(stack === undefined ? {} : { stack }) });
    void endProcess(1);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
}
