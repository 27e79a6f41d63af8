import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { asksOf } from "@fairlead/lab/provider/node-http";
import { runnerIn } from "@fairlead/lab/wire";

/** Both proxies count under this name; each sample is a family's. */
const FULL_SYNC = /^kubeproxy_sync_full_proxy_rules_duration_seconds_sum\{ip_family="IPv4"\} (\S+)$/m;

/**
 * Milliseconds that a proxy has spent on full syncs of IPv4, by its own metrics.
 *
 * @throws Error when the proxy on this node does not say
 */
export async function fullSyncTime(node: NetworkNamespace): Promise<number> {
  return fullSyncTimeOf(await asksOf(runnerIn(node), {}).get("/metrics"));
}

export function fullSyncTimeOf(metrics: string): number {
  const [, seconds] = FULL_SYNC.exec(metrics.replaceAll("\r", "")) ?? [];
  if (seconds === undefined) throw new Error("the proxy's metrics have no duration of full syncs");
  return Number(seconds) * 1000;
}
