import type { IPFamily } from "@fairlead/base";

/** What every mode has. */
interface CommonSettings {
  /** 0…31 */
  readonly masqueradeBit: number;
  /** Every packet to a service is masqueraded. */
  readonly masqueradeAll: boolean;
  /** Milliseconds between full syncs. */
  readonly syncPeriodMs: number;
  /** 0: every change is written at once. */
  readonly minSyncPeriodMs: number;
}

/** Settings of iptables mode. */
export interface IptablesSettings extends CommonSettings {
  /** Node ports are served on 127.0.0.1 as well. */
  readonly localhostNodePorts: boolean;
}

/** Masquerading is that of KubeProxyConfiguration's `iptables` block. */
export interface IpvsSettings extends CommonSettings {
  /** A scheduler of the kernel, `rr` by default. */
  readonly scheduler: string;
  /** Canonical CIDRs whose virtual servers the clean-up leaves alone. */
  readonly excludeCIDRs: readonly string[];
  /**
   * arp_ignore and arp_announce are set, so that the node answers ARP for service addresses on their own interface
   * only.
   */
  readonly strictARP: boolean;
  /** 0: leave as it is; so for the other two. */
  readonly tcpTimeoutMs: number;
  /** Milliseconds of a connection after its FIN; 0: leave as it is. */
  readonly tcpFinTimeoutMs: number;
  /** Milliseconds of a UDP flow; 0: leave as it is. */
  readonly udpTimeoutMs: number;
  /** Without IPVS in the kernel iptables mode serves; false: the agent ends. */
  readonly fallback: boolean;
}

/** What becomes of node ports on a family's loopback addresses in nftables mode. */
export type LoopbackNodePorts =
  /** Nothing: packets go to whichever program listens there. */
  | "untouched"
  /** They are refused and counted, in every protocol. */
  | "refused"
  /** TCP is relayed by the agent's own process, other protocols are refused and counted. */
  | "relayed";

/** Settings of nftables mode. */
export interface NftablesSettings extends CommonSettings {
  /** By the gate KubeProxyNFTablesLocalhostNodePorts and nodePortAddresses. */
  readonly loopbackNodePorts: Readonly<Record<IPFamily, LoopbackNodePorts>>;
  /** Established connections of services bypass rules (nftables.fastPath). Absent: none does. */
  readonly fastPath?: FastPathSettings;
}

/** Which packets may bypass rules. */
export interface FastPathSettings {
  /**
   * The devices whose packets may bypass rules: names, in which `*` stands for any characters and `?` for one; auto:
   * those of this cluster's pods, and those by which other nodes are reached.
   */
  readonly devices: readonly string[] | "auto";
}

/** Whatever is not here is that of the `iptables` block. */
export interface UserspaceSettings extends IptablesSettings {
  /** Serve only on local ports and leave the kernel as it is (--userspace-only). */
  readonly only: boolean;
  /** Greater than 0. */
  readonly udpIdleTimeoutMs: number;
  /** 0: TCP connections may be idle for ever. */
  readonly tcpIdleTimeoutMs: number;
  /** Sockets that all relays may have open at once. */
  readonly maxSockets: number;
  /** Sockets that the relays of one service may have open at once. */
  readonly maxSocketsPerService: number;
}
