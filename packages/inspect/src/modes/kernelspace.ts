import { configuredOptions, createWindowsBackend, windowsFacts } from "@fairlead/backend-windows";
import { familyOf } from "@fairlead/base";
import { emptyHcn } from "./empty-node.ts";
import type { DryRunSettings, InspectedMode } from "./mode.ts";

export const kernelspace = {
  facts: windowsFacts,
  unread: "what it programs is in Windows' Host Compute Network, which cannot be read from here",
  unwritten: ({ config, nodes }) =>
    config.kernelspace.sourceVip === "" || (nodes?.own !== undefined && routesOf(nodes).length > 0)
      ? undefined
      : "winkernel.sourceVip is set, as on an overlay: what is written there follows the routes of the node's HCN network, which cannot be read from here, and no Node has spec.podCIDRs that say the same",
  unserved: "no load balancer",
  dryRun(plan, { config, nodes }, texts) {
    const options = configuredOptions(config);
    const own = options.sourceVip === "" ? undefined : nodes?.own;
    const kind = own && nodes ? ({ Type: "Overlay", Policies: routesOf(nodes) } as const) : { Type: "L2Bridge" };
    return createWindowsBackend(emptyHcn(plan, texts, kind), {
      ...options,
      family: plan.family,
      networkName: options.networkName || kind.Type.toLowerCase(),
      nodeAddress: async () => (own === undefined ? undefined : { address: own, mac: `MAC of ${own}` }),
    }).sync(plan);
  },
} as const satisfies InspectedMode;

/** As flannel makes them of Nodes. */
function routesOf({ others }: NonNullable<DryRunSettings["nodes"]>) {
  return others.flatMap(({ addresses, podCIDRs }) =>
    podCIDRs.flatMap((prefix) => {
      const provider = addresses.find((address) => familyOf(address) === familyOf(prefix));
      const Settings = { DestinationPrefix: prefix, ProviderAddress: provider };
      return provider === undefined ? [] : [{ Type: "RemoteSubnetRoute", Settings }];
    }),
  );
}
