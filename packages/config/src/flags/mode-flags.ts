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
        help: "iptables (default), ipvs, nftables or userspace.",
      },
      {
        name: "masquerade-all",
        type: type.boolean,
        fields: ["iptables.masqueradeAll", "nftables.masqueradeAll"],
        help: "Masquerade all traffic to ClusterIPs.",
      },
      {
        name: "iptables-masquerade-bit",
        type: type.int32,
        fields: ["iptables.masqueradeBit"],
        defaultText: "14",
        help: "Bit of the packet mark that asks for masquerading (iptables, ipvs), from 0 to 31.",
      },
      {
        name: "iptables-localhost-nodeports",
        type: type.boolean,
        fields: ["iptables.localhostNodePorts"],
        defaultText: "true",
        help: "Serve IPv4 node ports on 127.0.0.1 (iptables).",
      },
      {
        name: "iptables-sync-period",
        type: type.duration,
        fields: ["iptables.syncPeriod", "nftables.syncPeriod"],
        defaultText: "30s",
        help: "How often it is looked whether the rules are still there; greater than 0.",
      },
      {
        name: "iptables-min-sync-period",
        type: type.duration,
        fields: ["iptables.minSyncPeriod", "nftables.minSyncPeriod"],
        defaultText: "1s",
        help: "Shortest time between two writes; 0 writes every change at once.",
      },
      {
        name: "ipvs-sync-period",
        type: type.duration,
        fields: ["ipvs.syncPeriod"],
        defaultText: "30s",
        help: "As --iptables-sync-period, in ipvs mode.",
      },
      {
        name: "ipvs-min-sync-period",
        type: type.duration,
        fields: ["ipvs.minSyncPeriod"],
        defaultText: "1s",
        help: "As --iptables-min-sync-period, in ipvs mode.",
      },
      {
        name: "ipvs-scheduler",
        type: type.string,
        fields: ["ipvs.scheduler"],
        defaultText: "rr",
        help: "Scheduler of the virtual servers.",
      },
      {
        name: "ipvs-exclude-cidrs",
        type: type.strings,
        fields: ["ipvs.excludeCIDRs"],
        help: "CIDRs whose virtual servers are not cleaned up.",
      },
      {
        name: "ipvs-strict-arp",
        type: type.boolean,
        fields: ["ipvs.strictARP"],
        help: "Set arp_ignore to 1 and arp_announce to 2.",
      },
      {
        name: "ipvs-tcp-timeout",
        type: type.duration,
        fields: ["ipvs.tcpTimeout"],
        help: "Idle TCP connections of IPVS; 0 leaves it as it is.",
      },
      {
        name: "ipvs-tcpfin-timeout",
        type: type.duration,
        fields: ["ipvs.tcpFinTimeout"],
        help: "TCP connections of IPVS after a FIN; 0 leaves it as it is.",
      },
      {
        name: "ipvs-udp-timeout",
        type: type.duration,
        fields: ["ipvs.udpTimeout"],
        help: "UDP packets of IPVS; 0 leaves it as it is.",
      },
      {
        name: "ipvs-fallback",
        type: type.boolean,
        fields: ["ipvs.fallback"],
        document: "fairlead",
        withConfig: true,
        defaultText: "true",
        help: "Whether iptables mode serves where the kernel has no IPVS; false: end, as kube-proxy does.",
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
        help: "ClusterCIDR (default), NodeCIDR, BridgeInterface or InterfaceNamePrefix.",
      },
      {
        name: "cluster-cidr",
        type: type.string,
        fields: ["clusterCIDR"],
        help: "Pod CIDRs of the cluster, separated by commas; several of each family are allowed. Traffic from elsewhere is masqueraded.",
      },
      {
        name: "pod-bridge-interface",
        type: type.string,
        fields: ["detectLocal.bridgeInterface"],
        help: "The bridge of BridgeInterface.",
      },
      {
        name: "pod-interface-name-prefix",
        type: type.string,
        fields: ["detectLocal.interfaceNamePrefix"],
        help: "The prefix of InterfaceNamePrefix.",
      },
    ],
  },
  CONNTRACK_FLAGS,
];
