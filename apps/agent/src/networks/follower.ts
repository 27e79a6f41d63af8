import type { LiveNetworks } from "@fairlead/intake";
import type { SyncFollower } from "../sync/follower.ts";

/** Keeps up with where endpoints are. */
export function networksFollower(networks: LiveNetworks): SyncFollower {
  return {
    taken: () => networks.syncBegins(),
    planned: (_step, { services }) => networks.see(services),
  };
}
