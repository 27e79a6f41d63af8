import { formatDuration } from "../duration.ts";
import type { KubeProxyInput } from "../schema/kube-proxy.ts";
import type { ResolvedConfig } from "../types.ts";

/** A field of the schema that is not in a block does not compile. */
type ModeBlocks = {
  readonly [Mode in "iptables" | "ipvs" | "nftables"]: Readonly<Record<keyof KubeProxyInput[Mode], unknown>>;
};

/** The block of each mode; periods stand only in that of the mode in use. */
export function modeBlocks(config: ResolvedConfig, scheduler: string): ModeBlocks {
  const { iptables, ipvs, nftables, mode } = config;
  const periods = (used: boolean) => ({
    minSyncPeriod: formatDuration(used ? config[mode].minSyncPeriodMs : 0),
    syncPeriod: formatDuration(used ? config[mode].syncPeriodMs : 0),
  });
  const nft = mode === "nftables";
  return {
    iptables: {
      localhostNodePorts: iptables.localhostNodePorts,
      masqueradeAll: !nft && iptables.masqueradeAll,
      masqueradeBit: iptables.masqueradeBit,
      ...periods(mode === "iptables" || mode === "userspace"),
    },
    ipvs: {
      excludeCIDRs: ipvs.excludeCIDRs.length === 0 ? null : ipvs.excludeCIDRs,
      scheduler,
      strictARP: ipvs.strictARP,
      tcpFinTimeout: formatDuration(ipvs.tcpFinTimeoutMs),
      tcpTimeout: formatDuration(ipvs.tcpTimeoutMs),
      udpTimeout: formatDuration(ipvs.udpTimeoutMs),
      ...periods(mode === "ipvs"),
    },
    nftables: { masqueradeAll: nft && nftables.masqueradeAll, masqueradeBit: nftables.masqueradeBit, ...periods(nft) },
  };
}

/** Absent where it says what the mode does by itself. */
export function nodePortAddressesOf({ mode, nodePortAddresses }: ResolvedConfig): readonly string[] | null {
  const unset = mode !== "nftables" && nodePortAddresses.length === 1 && nodePortAddresses[0] === "all";
  return unset ? null : nodePortAddresses;
}
