/** What this mode can do, and how it reads a configuration. */

import type { ModeFacts, ModeSemantics } from "@fairlead/core";

/**
 * How kernelspace mode reads the plan where modes differ (upstream: pkg/proxy/winkernel). HNS has no rule that refuses
 * a packet: what the plan refuses or drops has no load balancer.
 */
export const windowsSemantics: ModeSemantics = {
  localSourcesShortCut: false,
  localWithoutEndpoints: "drop",
  withoutEndpoints: "reject",
  ignoresHints: true,
  ignoresSourceRanges: true,
  ignoresNodePortAddresses: true,
  terminatingStandIn: "load-balancers",
  preserveDestination: "preserve-destination",
};

/** What holds for kernelspace mode on every node. */
export const windowsFacts = {
  name: "kernelspace",
  semantics: windowsSemantics,
  needs: { iptables: [], nodeAddresses: false, serviceCIDRs: true, kernelParts: [], sysctls: [] },
  keeps: {},
  objects: {
    rules: [],
    own: {
      kinds: ["loadBalancers", "remoteEndpoints"],
      help: "Load balancers and endpoints of other nodes that the plan needs (kernelspace mode)",
    },
  },
  packetCounters: {},
  endsConnections: true,
  // They have HNS in common.
  familiesAtOnce: false,
} as const satisfies ModeFacts;
