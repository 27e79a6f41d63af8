import { parseCIDRLeniently } from "@fairlead/base";
import type { AgentConfig } from "../types.ts";

type Networks = Pick<AgentConfig, "clusterCIDRs" | "multiCNI">;

/** The networks that decide which devices have a fast path; canonical CIDRs. */
export interface FastPathNetworks {
  /** Those of this cluster's pods. */
  readonly pods: readonly string[];
  /** Those of excluded networks. */
  readonly excluded: readonly string[];
}

/** As the configuration names them: learned networks are not among them. */
export function fastPathNetworks({ clusterCIDRs: pods, multiCNI }: Networks): FastPathNetworks {
  return { pods, excluded: multiCNI.excludeClusterCIDRs.flatMap((text) => parseCIDRLeniently(text)?.text ?? []) };
}

/** Why `devices: auto` disables the fast path; undefined: it can choose, or devices are named. */
export function whyNotAuto({
  nftables,
  clusterCIDRs,
  multiCNI,
}: Networks & Pick<AgentConfig, "nftables">): string | undefined {
  if (nftables.fastPath?.devices !== "auto") return undefined;
  const { excludeCIDRsFrom, clusterCIDRsFrom } = multiCNI;
  if (excludeCIDRsFrom.length + clusterCIDRsFrom.length > 0)
    return "devices: auto does not know networks that are learned; name the devices";
  return clusterCIDRs.length > 0 ? undefined : "devices: auto needs clusterCIDR; give it, or name the devices";
}
