import { type AgentConfig, withMode } from "@fairlead/config";
import { Memory } from "@fairlead/endpoint-filter";
import { MODES, type Mode } from "@fairlead/inspect";
import { filterSettings, networksSettings } from "@fairlead/intake";
import { CommandFailure } from "../frame/errors.ts";
import type { AgentSetup } from "./agent.ts";

/**
 * An agent with this configuration.
 *
 * @throws CommandFailure for a mode that no plan can be made for, and values that contradict each other
 */
export function setupOf(config: AgentConfig): AgentSetup {
  const mode = MODES.find((one) => one === config.mode);
  if (mode === undefined) {
    throw new CommandFailure(`mode ${config.mode}: no plan can be made for it; use ${MODES.join(" or ")}`);
  }
  const filter = filterSettings(config);
  if (!filter.ok) throw new CommandFailure(filter.errors.join("\n"));
  return {
    mode,
    config,
    filter: filter.options,
    networks: networksSettings(config, filter.options),
    memory: Memory.empty,
  };
}

/** The same agent in another mode: what the configuration does not set follows the mode. */
export function inMode(setup: AgentSetup, mode: Mode): AgentSetup {
  return { ...setup, mode, config: withMode(setup.config, mode) };
}
