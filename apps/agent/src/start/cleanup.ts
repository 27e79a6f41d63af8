import { removeIptablesMode } from "@fairlead/backend-iptables";
import type { Kernel } from "../kernel/kernel.ts";
import { describeError, type Log } from "../log/log.ts";
import { removeLeftovers } from "../mode/leftovers.ts";
import { allFamilies } from "../node/families.ts";

/** Removes what kube-proxy and Fairlead left in the kernel, in both families. Resolves to the exit code. */
export async function cleanUp(kernel: Kernel, log: Log): Promise<number> {
  let failed = false;
  for (const family of allFamilies) {
    try {
      await removeIptablesMode(await kernel.iptables(family));
      log.info("Removed the iptables rules", { ipFamily: family });
    } catch (error) {
      failed = true;
      log.error("Cannot remove the iptables rules", { ipFamily: family, errors: messages(error) });
    }
  }
  const nothingLeft = await removeLeftovers(kernel, log);
  return failed || !nothingLeft ? 1 : 0;
}

function messages(error: unknown): readonly string[] {
  return error instanceof AggregateError ? error.errors.map(describeError) : [describeError(error)];
}
