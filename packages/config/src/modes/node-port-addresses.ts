import { familyOf, IP_FAMILIES, type IPFamily, isLoopback } from "@fairlead/base";
import type { LoopbackNodePorts, NftablesSettings } from "../mode-settings.ts";
import type { Report } from "../report.ts";
import type { AgentConfig, ProxyMode } from "../types.ts";

/** Where node ports are served when nothing is said; kube-proxy's nftables mode differs from its others. */
export function defaultNodePortAddresses(mode: ProxyMode): readonly string[] {
  return [mode === "nftables" ? "primary" : "all"];
}

/**
 * Upstream: pkg/proxy/nftables/proxier.go, localhostNodePortRejectProtocols (KEP-6032).
 *
 * @param selectors CIDRs and keywords (KubeProxyConfiguration.nodePortAddresses)
 */
export function loopbackNodePorts(gate: boolean, selectors: readonly string[]): NftablesSettings["loopbackNodePorts"] {
  const of = (family: IPFamily): LoopbackNodePorts => {
    if (!gate) return "untouched";
    return namesLoopback(selectors, family) ? "relayed" : "refused";
  };
  return { IPv4: of("IPv4"), IPv6: of("IPv6") };
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
      "KubeProxyNFTablesLocalhostNodePorts=true relays TCP there",
  );
}
