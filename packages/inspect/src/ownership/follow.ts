import { IP_FAMILIES } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import {
  LivePlan,
  type LivePlanParts,
  learnedCIDRs,
  type OwnershipRow,
  ownershipReport,
  ownershipRow,
} from "@fairlead/intake";
import type { ObjectSource } from "@fairlead/watch";
import { factsOf, type Mode } from "../modes/index.ts";

export interface OwnershipListener {
  /** All services, once they are known. */
  readonly onAll: (rows: readonly OwnershipRow[]) => void;
  /** A service whose row has changed, or that is new. */
  readonly onChange: (row: OwnershipRow) => void;
  /** A service that is gone in that family. */
  readonly onGone: (row: OwnershipRow) => void;
}

type Request = Pick<LivePlanParts, "config" | "filter" | "networks" | "memory" | "nodeName"> & { readonly mode: Mode };

/**
 * Follows who owns the services of a source until the signal aborts; remembers owners, and learns networks, as the
 * agent does.
 */
export async function followOwnership(
  source: ObjectSource,
  request: Request,
  listener: OwnershipListener,
  signal: AbortSignal,
): Promise<void> {
  const rows = new Map<string, OwnershipRow>();
  const live = new LivePlan({
    ...request,
    mode: factsOf(request.mode),
    purpose: "owners",
    onPlanned: (services) => (services === "all" ? reportAll() : report(services)),
    onMirrored: (service) => report([service]),
  });
  const reportAll = () => {
    const { services } = ownershipReport(live.planner.ownerships(), live.report, live.pods);
    for (const row of services) rows.set(`${row.ipFamily} ${row.service}`, row);
    listener.onAll(services);
  };
  const report = (services: Iterable<ServiceKey>) => {
    const learned = learnedCIDRs(live.report?.cidrs ?? []);
    for (const service of services) {
      for (const family of IP_FAMILIES) {
        const decision = live.planner.ownership(service, family);
        const row = decision && ownershipRow({ service, family, decision }, learned, live.pods);
        reportRow(`${family} ${service}`, row);
      }
    }
  };
  const reportRow = (id: string, row: OwnershipRow | undefined) => {
    const before = rows.get(id);
    if (row === undefined) {
      if (rows.delete(id) && before !== undefined) listener.onGone(before);
    } else if (JSON.stringify(row) !== JSON.stringify(before)) {
      rows.set(id, row);
      listener.onChange(row);
    }
  };
  await live.follow(source, signal);
}
