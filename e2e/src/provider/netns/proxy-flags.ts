import type { ClusterShape } from "../cluster.ts";

export interface ProxySettings {
  readonly nodeName: string;
  readonly kubeconfig: string;
  readonly stateFolder: string;
}

/** What Fairlead is run with on a node. */
export function proxyFlags(shape: ClusterShape, settings: ProxySettings): readonly string[] {
  const excluded = networkCIDRs(shape, { excluded: true });
  return [
    `--proxy-mode=${shape.mode}`,
    `--kubeconfig=${settings.kubeconfig}`,
    `--hostname-override=${settings.nodeName}`,
    `--state-dir=${settings.stateFolder}`,
    `--cluster-cidr=${networkCIDRs(shape, { excluded: false }).join(",")}`,
    ...(excluded.length > 0 ? [`--exclude-cluster-cidr=${excluded.join(",")}`] : []),
    // Specs wait for changes; a cluster of two nodes can take them at once.
    "--iptables-min-sync-period=50ms",
    `--iptables-sync-period=${SYNC_PERIOD_MS}ms`,
    "-v=2",
  ];
}

/** How long what was flushed may stay away. */
export const SYNC_PERIOD_MS = 2_000;

/** The pod CIDRs of the networks that Fairlead serves, or of those that it leaves alone. */
export function networkCIDRs(
  { networks }: ClusterShape,
  wanted: Pick<ClusterShape["networks"][0], "excluded">,
): readonly string[] {
  return networks
    .filter(({ excluded }) => excluded === wanted.excluded)
    .flatMap(({ podCIDRs }) => Object.values(podCIDRs));
}
