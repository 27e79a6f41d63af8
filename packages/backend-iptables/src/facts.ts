import type { ModeFacts } from "@fairlead/core";
import { FIXED_CHAINS } from "./plan/frame.ts";
import { OFF_CLUSTER } from "./plan/group-names.ts";
import { INVALID_DROPPED_COUNTER, LOCALHOST_ACCEPTED_COUNTER } from "./plan/names.ts";
import { iptablesSemantics } from "./semantics.ts";

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
