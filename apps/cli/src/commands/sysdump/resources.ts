import { systemClock } from "@fairlead/base";
import { NetworksOnce } from "@fairlead/intake";
import type { OtherResource } from "@fairlead/watch";
import type { AgentSetup } from "../../inputs/agent.ts";

/** The resources whose objects the agent reads to learn networks; none where it learns none. */
export function networkResources({ networks }: Pick<AgentSetup, "networks">): readonly OtherResource[] {
  if (networks === undefined) return [];
  const once = new NetworksOnce({ settings: networks, clock: systemClock, onReady: () => {} });
  return once.subscriptions.map(({ resource }) => resource);
}
