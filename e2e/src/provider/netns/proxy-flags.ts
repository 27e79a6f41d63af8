import type { ClusterShape, NetworkShape } from "../cluster.ts";

export interface ProxySettings {
  readonly nodeName: string;
  readonly kubeconfig: string;
  readonly stateFolder: string;
}

/** What Fairlead is run with on a node. */
export function proxyFlags({ mode, networks }: ClusterShape, settings: ProxySettings): readonly string[] {
  const own = cidrs(networks.filter(({ excluded }) => !excluded));
  const excluded = cidrs(networks.filter((network) => network.excluded));
  return [
    `--proxy-mode=${mode}`,
    `--kubeconfig=${settings.kubeconfig}`,
    `--hostname-override=${settings.nodeName}`,
    `--state-dir=${settings.stateFolder}`,
    `--cluster-cidr=${own.join(",")}`,
    ...(excluded.length > 0 ? [`--exclude-cluster-cidr=${excluded.join(",")}`] : []),
    // Specs wait for changes; a cluster of two nodes can take them at once.
    "--iptables-min-sync-period=50ms",
    `--iptables-sync-period=${SYNC_PERIOD_MS}ms`,
    "-v=2",
  ];
}

/** How long what was flushed may stay away. */
const SYNC_PERIOD_MS = 2_000;

function cidrs(networks: readonly NetworkShape[]): readonly string[] {
  return networks.flatMap(({ podCIDRs }) => Object.values(podCIDRs));
}
