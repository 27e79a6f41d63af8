import type { ModeFacts } from "@fairlead/core";
import { CHAINS } from "./plan/chains.ts";
import { userspaceSemantics } from "./semantics.ts";

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
