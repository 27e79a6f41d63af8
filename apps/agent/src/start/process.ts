/** The process: its signals, its end, and where it stands when memory runs out. */

import { writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { constants, hostname } from "node:os";
import { errorChainText } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { FilterOptions, MemoryScope } from "@fairlead/endpoint-filter";
import { filterSettings } from "@fairlead/intake";
import type { CommandLineIO } from "../cli.ts";
import { descriptorLimit, descriptorShares } from "../descriptors.ts";
import { createLog, type Log } from "../log.ts";
import type { AgentParts } from "../run/parts.ts";
import { runAgent } from "../run/run-agent.ts";

/** What Node's thread pool may be busy with for as long as a file or a name server wants. */
const POOLED: readonly string[] = ["FSReqPromise", "FSReqCallback", "FileHandleCloseReq", "GetAddrInfoReqWrap"];

/** Milliseconds in which a file that is written, or read, comes to its end by itself. */
const POOL_MS = 100;

/**
 * Ends this process. process.exit waits for the thread pool: a read of a FIFO, or a name server that does not answer,
 * would keep it, and SIGTERM would end nothing. What comes to its end soon is waited for: the other way is another
 * program for a moment, which a signal that this one takes would end with a code of its own.
 */
export function endProcess(code: number, patience = POOL_MS): void {
  const isBusy = process.getActiveResourcesInfo().some((resource) => POOLED.includes(resource));
  if (!isBusy) process.exit(code);
  if (patience <= 0) exitAtOnce(code);
  setTimeout(() => endProcess(code, patience - POLL_MS), POLL_MS);
}

const POLL_MS = 5;

/** Windows has Ctrl-Break in place of SIGTERM; elsewhere nothing sends it. */
const STOPS = ["SIGTERM", "SIGINT", "SIGBREAK"] as const;

/**
 * Has SIGTERM and SIGINT end the process, with the code that a shell gives it: the first process of a container has no
 * default for them.
 */
export function endOnSignal(): void {
  for (const name of STOPS) process.on(name, () => endProcess(128 + constants.signals[name]));
}

/** Milliseconds after SIGTERM in which the process is gone, whatever it was in the middle of. */
const SHUTDOWN_MS = 1_900;

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

/** What nothing handles leaves an unknown state: better to be started again. */
export function failOnUnhandled(log: Log): void {
  const fail = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined;
    log.error("Unhandled error", { error: errorChainText(error), ...(stack === undefined ? {} : { stack }) });
    endProcess(1, 0);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
}

/** What every kind of run starts from. */
interface ProcessStart {
  /** Aborts on SIGTERM and SIGINT. */
  readonly stop: AbortSignal;
  /** Has a function called at each SIGUSR2. */
  readonly onFullSyncAsked: (ask: () => void) => void;
  readonly filter: FilterOptions & MemoryScope;
  /** Remarks about the filter's settings, for the log. */
  readonly notes: readonly string[];
  readonly nodeName: string;
  /** Connections that all HTTP ports together may have open. */
  readonly maxClients: number;
}

/** @throws StartError naming the settings that do not fit together */
export function startProcess(config: AgentConfig, log: Log): ProcessStart {
  failOnUnhandled(log);
  const stop = stopSignal(log);
  const onFullSyncAsked = fullSyncSignal(log);
  const filter = filterSettings(config);
  if (!filter.ok) throw new StartError(filter.errors.join("\n"));
  return {
    stop,
    onFullSyncAsked,
    filter: filter.options,
    notes: filter.notes,
    nodeName: config.hostnameOverride ?? hostname().trim().toLowerCase(),
    maxClients: descriptorShares(descriptorLimit()).clients,
  };
}

/** Runs the agent until `stop` aborts or it cannot continue. */
export async function runToExit(parts: AgentParts, stop: AbortSignal): Promise<number> {
  const reason = await runAgent(parts, stop);
  if (reason === undefined) return 0;
  parts.log.error("Fairlead cannot continue; exiting", { reason });
  return 1;
}

/** @throws StartError where the file of --write-config-to cannot be written */
export function writeConfig(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new StartError(`--write-config-to=${path}: cannot be written: ${errorChainText(error)}`, { cause: error });
  }
}

/** Sets how late the kernel chooses this process when memory runs out. Lowering it needs CAP_SYS_RESOURCE. */
export async function adjustOOMScore(score: number, log: Log): Promise<void> {
  await writeFile("/proc/self/oom_score_adj", String(score)).catch((error: unknown) =>
    log.verbose(2, "Cannot set the OOM score; it stays unchanged", {
      oomScoreAdj: score,
      error: errorChainText(error),
    }),
  );
}

/** `--inspect`, `--inspect-brk` and `--inspect-wait` open it; `--inspect-port` only says where. */
const OPENS = /(?:^|\s)--inspect(?:-brk|-wait)?(?=[=\s]|$)/;

/**
 * Why this process must not go on: it was started with Node's inspector open, which runs any local user's code with the
 * agent's rights. The bundle's first line takes SIGUSR1, which opens it later.
 *
 * @param options those of Node on the command line (`process.execArgv`)
 * @param environment those of NODE_OPTIONS
 * @returns what was asked for and what to do; undefined: nothing was
 */
export function inspectorProblem(options: readonly string[], environment = ""): string | undefined {
  const asked = options.find((option) => OPENS.test(option));
  const named = asked ?? (OPENS.test(environment) ? `NODE_OPTIONS=${environment}` : undefined);
  if (named === undefined) return undefined;
  return `${named}: any local user could run code in this process by Node's inspector; leave it out (enableProfiling profiles)`;
}

/**
 * What a process was started for, with its log. Resolves to the exit code, whatever is thrown.
 *
 * @param name of the process, for its last line
 */
export function logged<Config extends { readonly logging: Parameters<typeof createLog>[0] }>(
  act: (config: Config, log: Log, out: (text: string) => void) => Promise<number>,
  name = "Fairlead",
): (config: Config, warnings: readonly string[], io: Pick<CommandLineIO, "out" | "err">) => Promise<number> {
  return async (config, warnings, { out, err }) => {
    const log = createLog(config.logging);
    for (const warning of warnings) log.warn(warning);
    try {
      return await act(config, log, out);
    } catch (error) {
      if (error instanceof StartError) err(`${error.message}\n`);
      else log.error(`${name} cannot continue; exiting`, { reason: errorChainText(error) });
      return 1;
    }
  };
}

/** The agent cannot start. The message is for the operator: what is wrong, and what to do about it. */
export class StartError extends Error {
  override readonly name = "StartError";
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

/**
 * Takes SIGUSR2 from now on, by which an operator asks for a full sync: the kernel lets only root and the own user send
 * it. Unhandled it would end the process, so this comes before anybody can know of it.
 *
 * @returns has a function called whenever it comes; what came before is covered by the first sync, which is full
 */
function fullSyncSignal(log: Log): (ask: () => void) => void {
  let notify = () => {};
  process.on("SIGUSR2", () => {
    log.verbose(1, "Received a signal for a full sync", { signal: "SIGUSR2" });
    notify();
  });
  return (ask) => {
    notify = ask;
  };
}
