import type { NetworkSettings, Variables } from "../networks/manifest.ts";

/** What Calico's manifest finds out by itself, or has tunnels for. */
export function calicoVariables({ podCIDRs }: Pick<NetworkSettings, "podCIDRs">): Variables {
  const withoutTunnels = { CALICO_IPV4POOL_IPIP: "Never", CALICO_IPV4POOL_VXLAN: "Never" };
  return { "calico-node": { CALICO_IPV4POOL_CIDR: podCIDRs.IPv4 ?? "", ...withoutTunnels } };
}

/**
 * kube-ovn's script sets its variables at its beginning, a line each, and again for other families.
 *
 * @throws Error when one of them is not there anymore
 */
export function kubeOvnScript(
  script: string,
  { podCIDRs, families, configFolder }: Omit<NetworkSettings, "apiServer">,
  serviceCIDRs: NetworkSettings["podCIDRs"],
): string {
  const all = (cidrs: NetworkSettings["podCIDRs"]) => families.map((family) => cidrs[family]).join(",");
  const gateways = families.map((family) => (podCIDRs[family] ?? "").replace(/0\/16$/, "1").replace(/\/48$/, "1"));
  const values = {
    POD_CIDR: all(podCIDRs),
    POD_GATEWAY: gateways.join(","),
    SVC_CIDR: all(serviceCIDRs),
    CNI_CONF_DIR: configFolder,
  };
  return Object.entries(values).reduce((text, [name, value]) => {
    const line = new RegExp(`^( *)${name}=.*$`, "gm");
    if (text.search(line) === -1) throw new Error(`kube-ovn's script has no ${name} any more`);
    return text.replace(line, `$1${name}="${value}"`);
  }, script);
}
