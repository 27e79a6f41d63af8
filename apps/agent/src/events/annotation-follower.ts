import type { NodeEvents } from "@fairlead/intake";
import type { SyncFollower } from "../sync/follower.ts";

/** An Event on a Service whose annotation this node cannot follow: its owner does not read the agents' logs. */
export function annotationFollower(events: Pick<NodeEvents, "report">): SyncFollower {
  return {
    planned({ problems }) {
      for (const { kind, namespace, name, field, value, reason } of problems) {
        if (kind !== "Service" || field !== "metadata.annotations") continue;
        const message = value === "" ? reason : `${reason}; its value is ${value}`;
        void events.report({ type: "Warning", reason: "InvalidAnnotation", message, service: { namespace, name } });
      }
    },
  };
}
