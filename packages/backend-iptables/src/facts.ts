/** What this mode can do, and how it reads a configuration. */

import type { ModeFacts, ModeSemantics } from "@fairlead/core";
import { FIXED_CHAINS } from "./plan/frame.ts";
import { INVALID_DROPPED_COUNTER, LOCALHOST_ACCEPTED_COUNTER, OFF_CLUSTER } from "./plan/group-names.ts";

/** How iptables mode reads the plan where modes differ (upstream: pkg/proxy/iptables). */
export const iptablesSemantics: ModeSemantics = {
  localSourcesShortCut: true,
  excludesClients: true,
  localWithoutEndpoints: "drop",
  withoutEndpoints: "reject",
  weights: "and refusals",
  letsNodeOut: true,
};

/** What holds for iptables mode on every node (upstream: pkg/proxy/iptables). */
export const iptablesFacts = {
  name: "iptables",
  semantics: iptablesSemantics,
  needs: {
    iptables: ["nat", "filter"],
    // Most addresses that come and go mean nothing to the rules, and must not lead to a sync.
    nodeAddresses: false,
    kernelParts: [],
    sysctls: [],
  },
  keeps: { ...FIXED_CHAINS, nat: [...FIXED_CHAINS.nat, OFF_CLUSTER] },
  objects: { rules: ["filter", "nat"] },
  packetCounters: { invalidDropped: INVALID_DROPPED_COUNTER, localhostAccepted: LOCALHOST_ACCEPTED_COUNTER },
  familiesAtOnce: true,
} as const satisfies ModeFacts;
