import type { AgentConfig } from "../types.ts";
import { defaultNodePortAddresses } from "./node-port-addresses.ts";

/** The configuration as it is for another mode than the one that it names: what nobody set follows the mode. */
export function withMode(config: AgentConfig, mode: "iptables" | "ipvs" | "nftables"): AgentConfig {
  const { syncPeriodMs, minSyncPeriodMs } = config[mode];
  const { masqueradeAll, masqueradeBit } = {
    iptables: config.iptables,
    ipvs: config.iptables,
    nftables: config.nftables,
  }[mode];
  const given = config.provenance["nodePortAddresses"] !== undefined;
  return {
    ...config,
    mode,
    syncPeriodMs,
    minSyncPeriodMs,
    masqueradeAll,
    masqueradeBit,
    nodePortAddresses: given ? config.nodePortAddresses : defaultNodePortAddresses(mode),
  };
}
