import { constants } from "node:os";
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
export function endProcess(code: number): void {
  const busy = process.getActiveResourcesInfo().some((resource) => POOLED.includes(resource));
  if (busy) exitAtOnce(code);
  process.exit(code);
}

/**
 * Ends this process without its threads: execve(2) ends them all, also those of the first process of a container, which
 * signals of its own do not.
 */
function exitAtOnce(code: number): void {
  try {
    process.execve?.(process.execPath, [process.execPath, "-e", `process.exit(${code})`], {});
  } catch {
    // There is no such program anymore.
  }
  // Node before 22.15 cannot do it.
  process.kill(process.pid, "SIGKILL");
}

const STOPS = ["SIGTERM", "SIGINT"] as const;

/**
 * Has SIGTERM and SIGINT end the process, with the code that a shell gives it: the first process of a container has no
 * default for them.
 */
export function endOnSignal(): void {
  for (const name of STOPS) process.on(name, () => endProcess(128 + constants.signals[name]));
}

/** Aborts on SIGTERM and SIGINT. Rules stay as they are, so there is nothing that must be waited for. */
export function stopSignal(log: Log): AbortSignal {
  const stop = new AbortController();
  for (const name of STOPS) {
    process.removeAllListeners(name);
    process.on(name, () => {
      log.verbose(1, "Received a signal to stop", { signal: name });
      stop.abort();
      setTimeout(() => endProcess(0), SHUTDOWN_MS).unref();
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

/** What nothing handles leaves an unknown state: better to be started again. */
export function failOnUnhandled(log: Log): void {
  const fail = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined;
    log.error("Unhandled error", { error: errorChainText(error), ...(stack === undefined ? {} : { stack }) });
    endProcess(1);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
}
