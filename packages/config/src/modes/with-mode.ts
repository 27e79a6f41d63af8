import type { AgentConfig, ProxyMode } from "../types.ts";
import { defaultNodePortAddresses } from "./node-port-addresses.ts";

/** The configuration as it is for another mode than the one that it names: unset fields follow the mode. */
export function withMode(config: AgentConfig, mode: ProxyMode): AgentConfig {
  const given = config.provenance["nodePortAddresses"] !== undefined;
  return { ...config, mode, nodePortAddresses: given ? config.nodePortAddresses : defaultNodePortAddresses(mode) };
}
