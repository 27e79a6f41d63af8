import { IP_FAMILIES, isLoopback } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { NodeIPs } from "@fairlead/intake";
import type { NodeAddress, WatchOptions } from "@fairlead/kernel";
import type { Kernel } from "../host/kernel.ts";

/** Gives the node's addresses now and after each change, until the signal of `watched` aborts. */
export async function followAddresses(
  kernel: Pick<Kernel, "addresses" | "sourceAddress">,
  watched: WatchOptions,
  onAddresses: (addresses: readonly string[], kernelIPs: NodeIPs) => void,
): Promise<void> {
  for await (const found of kernel.addresses.watch(watched)) {
    const ips: Partial<Record<IPFamily, string>> = {};
    for (const family of IP_FAMILIES) {
      const ip = (await kernel.sourceAddress(family)) ?? firstGlobal(found, family);
      if (ip !== undefined) ips[family] = ip;
    }
    onAddresses(
      found.map(({ address }) => address),
      ips,
    );
  }
}

/** On a node without a default route: its first address that is meant for others. */
function firstGlobal(addresses: readonly NodeAddress[], family: IPFamily): string | undefined {
  return addresses.find((one) => one.family === family && one.up && one.scope === "global" && !isLoopback(one.address))
    ?.address;
}
