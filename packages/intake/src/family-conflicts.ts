import { familyOf, isUnspecified } from "@fairlead/base";
import { type AgentConfig, type ConfigError, formatError } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import { KEYWORDS } from "./node-inputs.ts";

export interface FamilyConflictsOptions {
  readonly config: AgentConfig;
  readonly primary: IPFamily;
  /** The families that this node serves; the primary one is among them. */
  readonly served: readonly IPFamily[];
  readonly podCIDRs: readonly string[];
}

export interface FamilyConflicts {
  /** With these the node cannot recognize its pods' traffic: it must not begin. */
  readonly fatal: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * What of the configuration is only for a family that is not the node's primary one, or that it does not serve. Fatal
 * is what upstream ends for (cmd/kube-proxy/app/server.go, checkBadIPConfig).
 */
export function familyConflicts({ config, primary, served, podCIDRs }: FamilyConflictsOptions): FamilyConflicts {
  const other: IPFamily = primary === "IPv4" ? "IPv6" : "IPv4";
  const single = served.length === 1;
  const node = single ? `this node serves ${primary} only` : `the node's primary family is ${primary}`;
  const origin = (field: string) => config.provenance[field] ?? field;
  const conflicts: { readonly fatal: boolean; readonly error: ConfigError }[] = [];
  const check = (field: string, values: readonly string[], { fatal = false, fix = `add one of ${primary}` } = {}) => {
    if (values.length === 0 || values.some((value) => familyOf(value) !== other)) return;
    const message = `is ${other} only, but ${node}; ${fix}`;
    conflicts.push({ fatal, error: { field, value: values.join(","), message } });
  };
  const { clusterCIDRs, detectLocal, nodePortAddresses, ipvs } = config;
  check(origin("clusterCIDR"), clusterCIDRs, { fatal: single && detectLocal.kind === "cidrs" });
  check("the Node's spec.podCIDRs", podCIDRs, { fatal: detectLocal.kind === "node-cidr" });
  if (!nodePortAddresses.some((selector) => KEYWORDS.has(selector))) {
    const everywhere = (family: IPFamily) =>
      `node ports are served on all ${family} addresses; add a CIDR of ${family}, or the word primary`;
    check(origin("nodePortAddresses"), nodePortAddresses, { fix: everywhere(primary) });
    const lacksOther = !single && nodePortAddresses.every((selector) => familyOf(selector) === primary);
    if (lacksOther && [clusterCIDRs, podCIDRs, ipvs.excludeCIDRs].some(hasBoth)) {
      const message = `is ${primary} only, but the cluster has both families: ${everywhere(other)}`;
      const error = { field: origin("nodePortAddresses"), value: nodePortAddresses.join(","), message };
      conflicts.push({ fatal: false, error });
    }
  }
  if (single) {
    check(origin("ipvs.excludeCIDRs"), ipvs.excludeCIDRs);
    for (const field of ["healthzBindAddress", "metricsBindAddress"] as const) {
      const address = config[field]?.address;
      const fix = `bind an address of ${primary}`;
      if (address !== undefined && !isUnspecified(address)) check(origin(field), [address], { fix });
    }
  }
  const reported = (fatal: boolean) =>
    conflicts.filter((one) => one.fatal === fatal).map(({ error }) => formatError(error));
  return { fatal: reported(true), warnings: reported(false) };
}

function hasBoth(cidrs: readonly string[]): boolean {
  return new Set(cidrs.map(familyOf)).size === 2;
}
