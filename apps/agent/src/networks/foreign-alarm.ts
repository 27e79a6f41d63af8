import type { IPFamily, Ownership } from "@fairlead/core";
import type { NodeEvents } from "../events/node-events.ts";
import type { Log } from "../log/log.ts";

export interface ForeignAlarmParts {
  /** 0…100 */
  readonly maxForeignPercent: number;
  readonly families: readonly IPFamily[];
  readonly services: (family: IPFamily) => Readonly<Record<Ownership, number>>;
  readonly log: Pick<Log, "warn">;
  readonly events: Pick<NodeEvents, "report"> | undefined;
}

/** Reports once that more services of a family are foreign than expected, and again after they were not. */
export function foreignAlarm({ maxForeignPercent, families, services, log, events }: ForeignAlarmParts): {
  planned(): void;
} {
  const raised = new Set<IPFamily>();
  const look = (family: IPFamily) => {
    const { ours, foreign, mixed } = services(family);
    const all = ours + foreign + mixed;
    if (foreign * 100 <= all * maxForeignPercent) {
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
