import { familyOf, IP_FAMILIES, type IPFamily, isLoopback } from "@fairlead/base";
import type { Report } from "../report.ts";
import type { AgentConfig, ProxyMode } from "../types.ts";

/** Where node ports are served when nothing is said; kube-proxy's nftables mode differs from its others. */
export function defaultNodePortAddresses(mode: ProxyMode): readonly string[] {
  return [mode === "nftables" ? "primary" : "all"];
}

/** What becomes of node ports on a family's loopback addresses in nftables mode. */
export type LoopbackNodePorts =
  /** Nothing: packets go to whichever program listens there. */
  | "untouched"
  /** They are refused and counted, in every protocol. */
  | "refused"
  /** TCP is relayed by the agent's own process, other protocols are refused and counted. */
  | "relayed";

/**
 * Upstream: pkg/proxy/nftables/proxier.go, localhostNodePortRejectProtocols (KEP-6032). Meant for nftables mode; others
 * serve loopback addresses by their own settings.
 */
export function loopbackNodePorts(
  { features, nodePortAddresses }: Pick<AgentConfig, "features" | "nodePortAddresses">,
  family: IPFamily,
): LoopbackNodePorts {
  if (!features.nftLocalhostNodePorts) return "untouched";
  return namesLoopback(nodePortAddresses, family) ? "relayed" : "refused";
}

/** Whether one of the selectors is of loopback addresses; one that is of others as well, such as `all`, is not. */
function namesLoopback(selectors: readonly string[], family: IPFamily): boolean {
  return selectors.some((one) => one === "localhost" || (familyOf(one) === family && isLoopback(one)));
}

/** nftables mode serves no loopback address without the gate, whatever the selectors say (upstream: silently). */
export function warnOfLoopbackNodePorts(
  { mode, features, nodePortAddresses }: Pick<AgentConfig, "mode" | "features" | "nodePortAddresses">,
  report: Report,
): void {
  if (mode !== "nftables" || features.nftLocalhostNodePorts) return;
  if (!IP_FAMILIES.some((family) => namesLoopback(nodePortAddresses, family))) return;
  report.warn(
    `${report.name("nodePortAddresses")}: nftables mode does not serve node ports on loopback addresses; the feature gate ` +
      "KubeProxyNFTablesLocalhostNodePorts=true has TCP relayed there",
  );
}
