import type { FlagGroup } from "./definition.ts";
import * as type from "./types.ts";

/** What is tracked for how long, and whose entries go. */
export const CONNTRACK_FLAGS: FlagGroup = {
  title: "Connection tracking",
  flags: [
    {
      name: "conntrack-max-per-core",
      type: type.int32,
      fields: ["conntrack.maxPerCore"],
      defaultText: "32768",
      help: "Connections tracked per core; 0 leaves it as it is.",
    },
    {
      name: "conntrack-min",
      type: type.int32,
      fields: ["conntrack.min"],
      defaultText: "131072",
      help: "Connections tracked at least.",
    },
    {
      name: "conntrack-tcp-timeout-established",
      type: type.duration,
      fields: ["conntrack.tcpEstablishedTimeout"],
      defaultText: "24h0m0s",
      help: "Idle established TCP connections; 0 leaves it as it is.",
    },
    {
      name: "conntrack-tcp-timeout-close-wait",
      type: type.duration,
      fields: ["conntrack.tcpCloseWaitTimeout"],
      defaultText: "1h0m0s",
      help: "TCP connections in CLOSE_WAIT; 0 leaves it as it is.",
    },
    {
      name: "conntrack-tcp-be-liberal",
      type: type.boolean,
      fields: ["conntrack.tcpBeLiberal"],
      help: "Set nf_conntrack_tcp_be_liberal: packets out of window are not invalid.",
    },
    {
      name: "conntrack-udp-timeout",
      type: type.duration,
      fields: ["conntrack.udpTimeout"],
      help: "UDP without an answer; 0 leaves it as it is.",
    },
    {
      name: "conntrack-udp-timeout-stream",
      type: type.duration,
      fields: ["conntrack.udpStreamTimeout"],
      help: "UDP with answers; 0 leaves it as it is.",
    },
    {
      name: "reset-stale-tcp",
      type: type.boolean,
      fields: ["resetStaleTCP"],
      document: "fairlead",
      withConfig: true,
      help: "Reset TCP connections of endpoints that are gone, when their clients send next; not in userspace mode.",
    },
  ],
};
