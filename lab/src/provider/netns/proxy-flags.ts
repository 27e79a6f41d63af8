import { modeNamed } from "../../modes/index.ts";
import type { ClusterShape } from "../cluster.ts";
import type { AgentStart, NodeProxy } from "../node.ts";

export interface ProxySettings {
  readonly nodeName: string;
  readonly kubeconfig: string;
  readonly stateFolder: string;
}

/** What a proxy is run with on a node. */
export function proxyFlags(
  shape: ClusterShape,
  settings: ProxySettings,
  { mode, kubeProxy }: NodeProxy,
  { learns = false }: Pick<AgentStart, "learns"> = {},
): readonly string[] {
  const excluded = learns ? [] : networkCIDRs(shape, { excluded: true });
  const common = [
    `--proxy-mode=${mode}`,
    `--kubeconfig=${settings.kubeconfig}`,
    `--hostname-override=${settings.nodeName}`,
    ...(learns ? [] : [`--cluster-cidr=${networkCIDRs(shape, { excluded: false }).join(",")}`]),
  ];
  // What is the machine's own stays as it is.
  if (kubeProxy !== undefined) return [...common, "--conntrack-max-per-core=0", "--conntrack-min=0"];
  return [
    ...common,
    `--state-dir=${settings.stateFolder}`,
    ...(excluded.length > 0 ? [`--exclude-cluster-cidr=${excluded.join(",")}`] : []),
    // Specs wait for changes; a cluster of two nodes can take them at once.
    "--iptables-min-sync-period=50ms",
    `--iptables-sync-period=${SYNC_PERIOD_MS}ms`,
    ...modeNamed(mode).flags,
    `--ipvs-sync-period=${IPVS_SYNC_PERIOD_MS}ms`,
    "-v=2",
  ];
}

/**
 * How long what was flushed may stay away. In ipvs mode everything is read each time, and guests are slow: the default.
 */
export const SYNC_PERIOD_MS = 2_000;
export const IPVS_SYNC_PERIOD_MS = 30_000;

/** The pod CIDRs of the networks that Fairlead serves, or of those that it leaves alone, here and elsewhere. */
export function networkCIDRs(
  { networks, elsewhere = {} }: ClusterShape,
  wanted: Pick<ClusterShape["networks"][0], "excluded">,
): readonly string[] {
  const here = networks.filter(({ excluded }) => excluded === wanted.excluded).map(({ podCIDRs }) => podCIDRs);
  return [...here, ...(wanted.excluded ? [elsewhere] : [])].flatMap((podCIDRs) => Object.values(podCIDRs));
}
