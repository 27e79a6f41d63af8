/** What this mode can do, and how it reads a configuration. */

import type { ModeFacts, ModeSemantics } from "@fairlead/core";
import { CHAINS } from "./plan/frame.ts";

/** How ipvs mode reads the plan where modes differ (upstream: pkg/proxy/ipvs). */
export const ipvsSemantics: ModeSemantics = {
  localSourcesShortCut: false,
  localWithoutEndpoints: "cluster",
  withoutEndpoints: "empty",
  weights: "without refusals",
  noLocalCounts: "services",
  sourceHash: true,
};

/** What holds for ipvs mode on every node (upstream: pkg/proxy/ipvs). */
export const ipvsFacts = {
  name: "ipvs",
  semantics: ipvsSemantics,
  needs: {
    iptables: ["nat", "filter"],
    nodeAddresses: true,
    otherNodes: true,
    kernelParts: [
      {
        name: "ipvs",
        probe: ["cat", "/proc/net/ip_vs"],
        remedy: "load ip_vs, ip_vs_rr, ip_vs_wrr and ip_vs_sh, or use iptables mode",
      },
      {
        name: "ipset",
        probe: ["ipset", "list", "-n"],
        remedy: "load ip_set and install ipset, or use iptables mode",
      },
    ],
    sysctls: [
      {
        key: "net/ipv4/vs/conntrack",
        value: "1",
        why: "without it, traffic that virtual servers forward is not masqueraded; the agent sets it",
      },
    ],
  },
  keeps: CHAINS,
  objects: {
    rules: ["filter", "nat"],
    own: {
      kinds: ["virtualServers", "addresses", "setMembers"],
      help: "Virtual servers, addresses on the service device and set members that the plan needs (ipvs mode)",
    },
  },
  packetCounters: {},
  endsConnections: true,
  takesIn: true,
  // They have the service device and the tools in common.
  familiesAtOnce: false,
} as const satisfies ModeFacts;
