import { createIptablesBackend, iptablesFacts } from "@fairlead/backend-iptables";
import { emptyRules } from "../dry-run/empty-rules.ts";
import type { InspectedMode } from "./mode.ts";

export const iptables = {
  facts: iptablesFacts,
  dryRun(plan, { config, counters = false }, texts) {
    const { masqueradeBit, localhostNodePorts } = config.iptables;
    const { tcpBeLiberal } = config.conntrack;
    const backend = createIptablesBackend(emptyRules(plan.family, texts), {
      masqueradeBit,
      localhostNodePorts,
      tcpBeLiberal,
      counters: async (names) => new Set(counters ? names : []),
    });
    return backend.sync(plan);
  },
} as const satisfies InspectedMode;
