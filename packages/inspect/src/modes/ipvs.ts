import { createIpvsBackend, ipvsFacts } from "@fairlead/backend-ipvs";
import { emptyIpvs } from "../dry-run/empty-ipvs.ts";
import type { InspectedMode } from "./mode.ts";

export const ipvs = {
  facts: ipvsFacts,
  dryRun(plan, { config }, texts) {
    const { scheduler, excludeCIDRs } = config.ipvs;
    const backend = createIpvsBackend(emptyIpvs(plan.family, texts), {
      masqueradeBit: config.masqueradeBit,
      ...(scheduler === "" ? {} : { scheduler }),
      excludeCIDRs,
    });
    return backend.sync(plan);
  },
} as const satisfies InspectedMode;
