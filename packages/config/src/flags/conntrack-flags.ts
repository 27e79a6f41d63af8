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
      help: "Maximum number of tracked connections per CPU core. 0 keeps the kernel's setting.",
    },
    {
      name: "conntrack-min",
      type: type.int32,
      fields: ["conntrack.min"],
      defaultText: "131072",
      help: "Minimum limit of tracked connections, regardless of --conntrack-max-per-core.",
    },
    {
      name: "conntrack-tcp-timeout-established",
      type: type.duration,
      fields: ["conntrack.tcpEstablishedTimeout"],
      defaultText: "24h0m0s",
      help: "Idle timeout of established TCP connections. 0 keeps the kernel's setting.",
    },
    {
      name: "conntrack-tcp-timeout-close-wait",
      type: type.duration,
      fields: ["conntrack.tcpCloseWaitTimeout"],
      defaultText: "1h0m0s",
      help: "Timeout of TCP connections in CLOSE_WAIT. 0 keeps the kernel's setting.",
    },
    {
      name: "conntrack-tcp-be-liberal",
      type: type.boolean,
      fields: ["conntrack.tcpBeLiberal"],
      help: "Set nf_conntrack_tcp_be_liberal: out-of-window packets are not marked INVALID.",
    },
    {
      name: "conntrack-udp-timeout",
      type: type.duration,
      fields: ["conntrack.udpTimeout"],
      help: "Idle timeout of UDP flows without a reply. 0 keeps the kernel's setting.",
    },
    {
      name: "conntrack-udp-timeout-stream",
      type: type.duration,
      fields: ["conntrack.udpStreamTimeout"],
      help: "Idle timeout of UDP flows with replies. 0 keeps the kernel's setting.",
    },
    {
      name: "reset-stale-tcp",
      type: type.boolean,
      fields: ["resetStaleTCP"],
      document: "fairlead",
      withConfig: true,
      help: "Reset TCP connections to removed endpoints when the client next sends. Not in userspace mode.",
    },
  ],
};
