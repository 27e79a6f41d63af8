import { removeIptablesMode } from "@fairlead/backend-iptables";
import { ipFamilies } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Kernel } from "../host/kernel.ts";
import { describeError, type Log } from "../log/log.ts";
import { removeIpvsLeftovers, removeLeftovers, removeUserspaceLeftovers } from "../modes/leftovers.ts";

/** Removes what kube-proxy and Fairlead left in the kernel, in both families. Resolves to the exit code. */
export async function cleanUp(kernel: Kernel, log: Log): Promise<number> {
  let failed = false;
  for (const family of ipFamilies) {
    const errors = await cleanFamily(kernel, family, log);
    if (errors.length === 0) log.info("Removed the iptables rules", { ipFamily: family });
    else {
      failed = true;
      log.error("Cannot remove the iptables rules", { ipFamily: family, errors });
    }
  }
  const nothingLeft = await removeLeftovers(kernel, log);
  return failed || !nothingLeft ? 1 : 0;
}

/** Both variants of iptables are cleaned, as far as they are in use: nobody knows which one was, when the rules were made. */
async function cleanFamily(kernel: Kernel, family: IPFamily, log: Log): Promise<readonly string[]> {
  const errors = new Set<string>();
  const attempt = (work: () => Promise<void>) =>
    work().catch((error: unknown) => {
      for (const message of messages(error)) errors.add(message);
    });
  await attempt(async () => {
    for (const rules of await kernel.iptablesInUse(family)) {
      // Iptables mode's chains go last: those of the others refer to some that it has as well.
      await attempt(async () => {
        if (await removeIpvsLeftovers(kernel, rules)) log.info("Removed what ipvs mode left", { ipFamily: family });
      });
      await attempt(async () => {
        if (await removeUserspaceLeftovers(rules)) log.info("Removed what userspace mode left", { ipFamily: family });
      });
      await attempt(() => removeIptablesMode(rules));
    }
  });
  return [...errors];
}

function messages(error: unknown): readonly string[] {
  return error instanceof AggregateError ? error.errors.map(describeError) : [describeError(error)];
}
