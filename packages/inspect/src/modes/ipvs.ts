import { configuredOptions, createIpvsBackend, ipvsFacts } from "@fairlead/backend-ipvs";
import { emptyIpvs } from "./empty-node.ts";
import type { InspectedMode } from "./mode.ts";

export const ipvs = {
  facts: ipvsFacts,
  dryRun: (plan, { config }, texts) =>
    createIpvsBackend(emptyIpvs(plan.family, texts), configuredOptions(config)).sync(plan),
} as const satisfies InspectedMode;
