import { hostname } from "node:os";
import type { AgentConfig } from "@fairlead/config";
import type { FilterOptions, MemoryScope } from "@fairlead/endpoint-filter";
import { filterSettings } from "@fairlead/intake";
import { descriptorLimit, descriptorShares } from "../host/descriptors.ts";
import type { Log } from "../log/log.ts";
import type { AgentParts } from "../run/parts.ts";
import { runAgent } from "../run/run-agent.ts";
import { failOnUnhandled, fullSyncSignal, stopSignal } from "./process.ts";
import { StartError } from "./start-error.ts";

/** What every kind of run starts from. */
export interface ProcessStart {
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

/**
 * Runs the agent until `stop` aborts or it cannot continue.
 *
 * @returns the exit code
 */
export async function runToExit(parts: AgentParts, stop: AbortSignal): Promise<number> {
  const reason = await runAgent(parts, stop);
  if (reason === undefined) return 0;
  parts.log.error("Fairlead cannot continue; exiting", { reason });
  return 1;
}
