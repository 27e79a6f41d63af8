import type { DifferenceEvent } from "@fairlead/inspect";
import type { NodeEvent, NodeEvents } from "@fairlead/intake";
import type { Log } from "../log/log.ts";

/** The component of the Events, other than kube-proxy's own. */
export const COMPONENT = "fairlead-shadow";

/** A line for each service that begins to differ for good, with an Event about it, and one when it agrees again. */
export function tellNews(log: Log, events: Pick<NodeEvents, "report"> | undefined): (news: DifferenceEvent) => void {
  return ({ kind, subject, differences }) => {
    const { name: service, family: ipFamily } = subject;
    if (kind === "agrees") {
      log.info("kube-proxy matches the plan again", { service, ipFamily });
      return;
    }
    const [first, ...others] = differences;
    if (first === undefined) return;
    log.warn("kube-proxy differs from the plan; nothing is changed", {
      service,
      ipFamily,
      kind: first.kind,
      packet: first.packet,
      found: first.found,
      wanted: first.wanted,
      otherPackets: others.length,
    });
    if (subject.service !== undefined) void events?.report(eventOf(service, first, subject.service));
  };
}

function eventOf(
  name: string,
  { packet, found, wanted }: DifferenceEvent["differences"][number],
  service: NonNullable<NodeEvent["service"]>,
): NodeEvent {
  const message = `${name}: ${packet}: kube-proxy: ${found}; Fairlead: ${wanted}`;
  return { type: "Warning", reason: "ShadowDifference", action: "Compare", message, service };
}
