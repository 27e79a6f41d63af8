import type { ClusterNode } from "@fairlead/lab/provider/cluster";

/** Full syncs of an agent so far. */
export async function fullSyncs({ agent }: ClusterNode): Promise<number> {
  const text = await agent.get("/metrics");
  const counts = text.matchAll(/^kubeproxy_sync_full_proxy_rules_duration_seconds_count\{.*\} (\d+)$/gm);
  return Array.from(counts, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0);
}
