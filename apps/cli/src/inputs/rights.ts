import type { ReadOptions } from "@fairlead/inspect";
import { type Forbidden, mayNot } from "../cluster/forbidden.ts";

/** What of a cluster its user may read. */
export interface Rights {
  readonly without: NonNullable<ReadOptions["without"]>;
  /** Services of this namespace only. */
  readonly namespace: string | undefined;
}

export const ALL_RIGHTS: Rights = { without: new Set(), namespace: undefined };

interface LessRights {
  readonly rights: Rights;
  /** What the answer lacks, and the rule that is missing. */
  readonly remark: string;
}

/**
 * How to go on where something may not be read.
 *
 * @param asked the namespace that is asked about; undefined: all are
 * @returns undefined: nothing can be done without it
 */
export function withoutRight(rights: Rights, forbidden: Forbidden, asked: string | undefined): LessRights | undefined {
  const { resource } = forbidden;
  const { without } = rights;
  if (resource === "nodes" && !without.has("node")) {
    return {
      rights: { ...rights, without: new Set([...without, "node"]) },
      remark: `planned without zone and addresses of the node (--node-address gives them): ${mayNot(forbidden)}`,
    };
  }
  if (resource === "servicecidrs" && !without.has("serviceCIDRs")) {
    return {
      rights: { ...rights, without: new Set([...without, "serviceCIDRs"]) },
      remark: `planned without the ranges of ClusterIPs: ${mayNot(forbidden)}`,
    };
  }
  const ofServices = resource === "services" || resource === "endpointslices";
  if (!ofServices || asked === undefined || rights.namespace !== undefined) return undefined;
  return {
    rights: { ...rights, namespace: asked },
    remark: `only services of namespace ${asked} are known: ${mayNot(forbidden)}`,
  };
}
