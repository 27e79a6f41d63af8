import type { ProxyMode } from "../types.ts";

/** Where node ports are served when nothing is said; kube-proxy's nftables mode differs from its others. */
export function defaultNodePortAddresses(mode: ProxyMode): readonly string[] {
  return [mode === "nftables" ? "primary" : "all"];
}
