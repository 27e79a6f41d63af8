import { configuredOptions, createIptablesBackend, iptablesFacts } from "@fairlead/backend-iptables";
import { emptyRules } from "./empty-node.ts";
import type { InspectedMode } from "./mode.ts";

export const iptables = {
  facts: iptablesFacts,
  dryRun(plan, { config, counters = false, tcpBeLiberal = config.conntrack.tcpBeLiberal }, texts) {
    const backend = createIptablesBackend(emptyRules(plan.family, texts), {
      ...configuredOptions(config, { tcpBeLiberal }),
      counters: async (names) => new Set(counters ? names : []),
    });
    return backend.sync(plan);
  },
} as const satisfies InspectedMode;
