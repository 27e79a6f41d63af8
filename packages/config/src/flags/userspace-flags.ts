import type { FlagGroup } from "./definition.ts";
import * as type from "./types.ts";

/** Flags of userspace mode. The first two are kube-proxy's of v1.25. */
export const USERSPACE_FLAGS: FlagGroup = {
  title: "Userspace mode",
  flags: [
    {
      name: "proxy-port-range",
      type: type.string,
      fields: ["portRange"],
      help: "Ports that relays listen on, such as 10000-20000 or 10000+100. Empty: any.",
    },
    {
      name: "udp-timeout",
      type: type.duration,
      fields: ["udpIdleTimeout"],
      defaultText: "250ms",
      help: "Idle timeout of relayed UDP flows. Must be greater than 0.",
    },
    {
      name: "userspace-only",
      type: type.boolean,
      withConfig: true,
      help: "Serve only on local ports, without rules and without root privileges, and print the ports.",
    },
    {
      name: "userspace-tcp-idle-timeout",
      type: type.duration,
      fields: ["userspace.tcpIdleTimeout"],
      document: "fairlead",
      withConfig: true,
      defaultText: "24h0m0s",
      help: "Idle timeout of relayed TCP connections. 0 means no timeout.",
    },
    {
      name: "userspace-max-sockets",
      type: type.int32,
      fields: ["userspace.maxSockets"],
      document: "fairlead",
      withConfig: true,
      defaultText: "32000",
      help: "Maximum number of open sockets of relays. A TCP connection takes two.",
    },
    {
      name: "userspace-max-sockets-per-service",
      type: type.int32,
      fields: ["userspace.maxSocketsPerService"],
      document: "fairlead",
      withConfig: true,
      defaultText: "16000",
      help: "Maximum number of open sockets per service port.",
    },
  ],
};
