import type { IPFamily } from "@fairlead/core";
import type { SyncFollower } from "../sync/follower.ts";
import type { ServiceHealthServers } from "./service-health.ts";

/** Keeps the health-check node ports as the plan has them, whether or not the rules could be written. */
export function serviceHealthFollower(servers: ReadonlyMap<IPFamily, ServiceHealthServers>): SyncFollower {
  return {
    async ran({ family, plan }) {
      const { nodePortAddresses } = plan.node;
      const hosts = nodePortAddresses.kind === "all" ? undefined : nodePortAddresses.addresses;
      await servers.get(family)?.update(plan.healthChecks, hosts);
    },
  };
}
