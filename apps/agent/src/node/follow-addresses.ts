import type { IPFamily } from "@fairlead/core";
import type { Kernel } from "../kernel/kernel.ts";
import { allFamilies } from "./families.ts";
import type { NodeIPs } from "./node-ips.ts";

/** Gives the node's addresses now and after each change, until the signal aborts. */
export async function followAddresses(
  kernel: Pick<Kernel, "addresses" | "sourceAddress">,
  signal: AbortSignal,
  onAddresses: (addresses: readonly string[], kernelIPs: NodeIPs) => void,
): Promise<void> {
  for await (const found of kernel.addresses.watch({ signal })) {
    const ips: Partial<Record<IPFamily, string>> = {};
    for (const family of allFamilies) {
      const global = found.find((one) => one.family === family && one.scope === "global");
      const ip = (await kernel.sourceAddress(family)) ?? global?.address;
      if (ip !== undefined) ips[family] = ip;
    }
    onAddresses(
      found.map(({ address }) => address),
      ips,
    );
  }
}
