import { errorChainText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { NodeEvents } from "@fairlead/intake";
import type { SyncFollower } from "../sync/follower.ts";

/** One failure is repaired by the next sync; more of them in a row are a state that needs an operator. */
const TOO_MANY = 3;

/** An Event when syncs go on failing. Nothing waits for it to be sent. */
export function eventFollower(events: Pick<NodeEvents, "report">): SyncFollower {
  const failures = new Map<IPFamily, number>();
  return {
    ran({ family, outcome }) {
      if (outcome.kind === "synced") failures.delete(family);
      if (outcome.kind !== "failed") return;
      const count = (failures.get(family) ?? 0) + 1;
      failures.set(family, count);
      if (count < TOO_MANY) return;
      const message = `Failed to write the ${family} rules ${count} times in a row; previous rules stay in effect, retrying: ${errorChainText(outcome.error)}`;
      void events.report({ type: "Warning", reason: "SyncFailed", message });
    },
  };
}
