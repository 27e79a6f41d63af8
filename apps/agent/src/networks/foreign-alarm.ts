import type { IPFamily, Ownership } from "@fairlead/core";
import type { NodeEvents } from "@fairlead/intake";
import type { Log } from "../log/log.ts";
import type { NetworkMetrics } from "../metrics/network-metrics.ts";

export interface ForeignAlarmParts {
  /** 0…100 */
  readonly maxForeignPercent: number;
  readonly families: readonly IPFamily[];
  readonly services: (family: IPFamily) => Readonly<Record<Ownership, number>>;
  readonly metrics: Pick<NetworkMetrics, "setManyForeign"> | undefined;
  readonly log: Pick<Log, "warn">;
  readonly events: Pick<NodeEvents, "report"> | undefined;
}

/** Reports once that more services of a family are foreign than expected, and again after they were not. */
export function foreignAlarm(parts: ForeignAlarmParts): { planned(): void } {
  const { maxForeignPercent, families, services, metrics, log, events } = parts;
  const raised = new Set<IPFamily>();
  const look = (family: IPFamily) => {
    const { ours, foreign, mixed } = services(family);
    const all = ours + foreign + mixed;
    const isMany = foreign * 100 > all * maxForeignPercent;
    metrics?.setManyForeign(family, isMany);
    if (!isMany) {
      raised.delete(family);
      return;
    }
    if (raised.has(family)) return;
    raised.add(family);
    log.warn("More services are foreign than maxForeignPercent; they stay so, check the learned networks and rules", {
      ipFamily: family,
      foreign,
      services: all,
      maxForeignPercent,
    });
    const message = `${foreign} of ${all} ${family} services are another network's, more than ${maxForeignPercent} %`;
    void events?.report({ type: "Warning", reason: "ManyForeignServices", message });
  };
  return { planned: () => families.forEach(look) };
}
