import { CONNTRACK_FLAGS } from "./conntrack-flags.ts";
import type { FlagGroup } from "./definition.ts";
import * as type from "./types.ts";
import { USERSPACE_FLAGS } from "./userspace-flags.ts";

/** How services are programmed. */
export const MODE_FLAGS: readonly FlagGroup[] = [
  {
    title: "Mode",
    flags: [
      {
        name: "proxy-mode",
        type: type.mode,
        fields: ["mode"],
        help: "Proxy mode: iptables (default), ipvs, nftables or userspace.",
      },
      {
        name: "masquerade-all",
        type: type.boolean,
        fields: ["iptables.masqueradeAll", "nftables.masqueradeAll"],
        help: "Masquerade all traffic to ClusterIPs, whatever its source.",
      },
      {
        name: "iptables-masquerade-bit",
        type: type.int32,
        fields: ["iptables.masqueradeBit"],
        defaultText: "14",
        help: "Bit of the packet mark that requests masquerading (iptables, ipvs), from 0 to 31.",
      },
      {
        name: "iptables-localhost-nodeports",
        type: type.boolean,
        fields: ["iptables.localhostNodePorts"],
        defaultText: "true",
        help: "Accept IPv4 node ports on 127.0.0.1 (iptables).",
      },
      {
        name: "iptables-sync-period",
        type: type.duration,
        fields: ["iptables.syncPeriod", "nftables.syncPeriod"],
        defaultText: "30s",
        help: "How often the rules are checked and repaired. Must be greater than 0.",
      },
      {
        name: "iptables-min-sync-period",
        type: type.duration,
        fields: ["iptables.minSyncPeriod", "nftables.minSyncPeriod"],
        defaultText: "1s",
        help: "Minimum interval between two syncs. 0 syncs every change immediately.",
      },
      {
        name: "ipvs-sync-period",
        type: type.duration,
        fields: ["ipvs.syncPeriod"],
        defaultText: "30s",
        help: "Same as --iptables-sync-period, for ipvs mode.",
      },
      {
        name: "ipvs-min-sync-period",
        type: type.duration,
        fields: ["ipvs.minSyncPeriod"],
        defaultText: "1s",
        help: "Same as --iptables-min-sync-period, for ipvs mode.",
      },
      {
        name: "ipvs-scheduler",
        type: type.string,
        fields: ["ipvs.scheduler"],
        defaultText: "rr",
        help: "IPVS scheduler of virtual servers.",
      },
      {
        name: "ipvs-exclude-cidrs",
        type: type.strings,
        fields: ["ipvs.excludeCIDRs"],
        help: "CIDRs in which stale virtual servers are not removed.",
      },
      {
        name: "ipvs-strict-arp",
        type: type.boolean,
        fields: ["ipvs.strictARP"],
        help: "Strict ARP: set arp_ignore to 1 and arp_announce to 2.",
      },
      {
        name: "ipvs-tcp-timeout",
        type: type.duration,
        fields: ["ipvs.tcpTimeout"],
        help: "Timeout of idle IPVS TCP connections. 0 keeps the kernel's setting.",
      },
      {
        name: "ipvs-tcpfin-timeout",
        type: type.duration,
        fields: ["ipvs.tcpFinTimeout"],
        help: "Timeout of IPVS TCP connections after a FIN. 0 keeps the kernel's setting.",
      },
      {
        name: "ipvs-udp-timeout",
        type: type.duration,
        fields: ["ipvs.udpTimeout"],
        help: "Timeout of IPVS UDP flows. 0 keeps the kernel's setting.",
      },
      {
        name: "ipvs-fallback",
        type: type.boolean,
        fields: ["ipvs.fallback"],
        document: "fairlead",
        withConfig: true,
        defaultText: "true",
        help: "Fall back to iptables mode on kernels without IPVS. If false, exit, as kube-proxy does.",
      },
    ],
  },
  USERSPACE_FLAGS,
  {
    title: "Traffic of this node's pods",
    flags: [
      {
        name: "detect-local-mode",
        type: type.localMode,
        fields: ["detectLocalMode"],
        help: "How to detect local traffic: ClusterCIDR (default), NodeCIDR, BridgeInterface or InterfaceNamePrefix.",
      },
      {
        name: "cluster-cidr",
        type: type.string,
        fields: ["clusterCIDR"],
        help: "Pod CIDRs of the cluster, comma separated; several per family are allowed. Traffic from elsewhere is masqueraded.",
      },
      {
        name: "pod-bridge-interface",
        type: type.string,
        fields: ["detectLocal.bridgeInterface"],
        help: "Name of the bridge, for BridgeInterface.",
      },
      {
        name: "pod-interface-name-prefix",
        type: type.string,
        fields: ["detectLocal.interfaceNamePrefix"],
        help: "Prefix of interface names, for InterfaceNamePrefix.",
      },
    ],
  },
  CONNTRACK_FLAGS,
];
