/** What this mode can do, and how it reads a configuration. */

import type { ModeFacts, ModeSemantics } from "@fairlead/core";
import { CHAINS } from "./plan/chains.ts";

/**
 * How this mode reads the plan where modes differ: as iptables mode does. That every endpoint sees the node is no
 * choice.
 */
export const userspaceSemantics: ModeSemantics = {
  localSourcesShortCut: true,
  excludesClients: true,
  localWithoutEndpoints: "drop",
  withoutEndpoints: "reject",
  weights: "and refusals",
};

/** What holds for userspace mode on every node (upstream: pkg/proxy/userspace, until v1.25). */
export const userspaceFacts = {
  name: "userspace",
  semantics: userspaceSemantics,
  needs: { iptables: ["nat", "filter"], nodeAddresses: true, kernelParts: [], sysctls: [] },
  keeps: CHAINS,
  objects: { rules: ["filter", "nat"] },
  packetCounters: {},
  familiesAtOnce: true,
} as const satisfies ModeFacts;
