import { type AgentConfig, parseArguments } from "@fairlead/config";
import { filterSettings } from "../src/index.ts";

export function configOf(...flags: readonly string[]): AgentConfig {
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  return parsed.config;
}

export function filterOf(config: AgentConfig) {
  const settings = filterSettings(config);
  if (!settings.ok) throw new Error(settings.errors.join());
  return settings.options;
}
