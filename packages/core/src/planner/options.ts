import type { ModeSemantics } from "../backend.ts";
import { equal } from "../data.ts";
import type { EndpointFilter } from "../filter.ts";
import type { IPFamily } from "../objects.ts";
import type { LocalTrafficDetector, NodePlan, NodePortAddresses } from "../plan.ts";

/** What is planned for, apart from the objects. */
export interface PlannerOptions {
  /** Endpoints with this nodeName are local. */
  readonly nodeName: string;
  /** This node's topology.kubernetes.io/zone; absent: zone hints never match. */
  readonly zone?: string;
  /** The families to plan; services of the others have no plan. */
  readonly families: readonly IPFamily[];
  /** The node's primary address by family (upstream's nodeIP): source ranges that contain it let LB addresses in. */
  readonly nodeIPs: Partial<Readonly<Record<IPFamily, string>>>;
  /** The Node object's addresses, for notices about services that have one of them. Default: none. */
  readonly ownIPs?: readonly string[];
  /** Absent for a family: kind none. */
  readonly detectors: Partial<Readonly<Record<IPFamily, LocalTrafficDetector>>>;
  /** Absent for a family: kind all. */
  readonly nodePortAddresses: Partial<Readonly<Record<IPFamily, NodePortAddresses>>>;
  /**
   * The addresses that node ports may be served on, canonical, for services that choose among them: those of
   * `nodePortAddresses`, without loopback and link-local IPv6 ones. Absent: not known; such services have no node port.
   */
  readonly nodePortHosts?: Partial<Readonly<Record<IPFamily, readonly string[]>>>;
  /** `NodePlan.nodeAddresses` by family. */
  readonly nodeAddresses?: Partial<Readonly<Record<IPFamily, readonly string[]>>>;
  /** `NodePlan.otherNodes` by family. */
  readonly otherNodes?: Partial<Readonly<Record<IPFamily, readonly string[]>>>;
  /** `NodePlan.serviceCIDRs` by family. */
  readonly serviceCIDRs?: Partial<Readonly<Record<IPFamily, readonly string[]>>>;
  /** Every packet to a frontend is masqueraded (kube-proxy's --masquerade-all). */
  readonly masqueradeAll: boolean;
  /** False: spec.externalIPs are not served (the gate AllowServiceExternalIPs is off). */
  readonly externalIPs?: boolean;
  /** False: hints for nodes do not count (the gate PreferSameTrafficDistribution is off). */
  readonly nodeHints?: boolean;
  /**
   * True: of TCP, too, is known which endpoints there are, ready or not (`ServicePortGroup.present`), and connections
   * to those that are gone are to be reset (`NodePlan.resetStaleTCP`).
   */
  readonly resetStaleTCP?: boolean;
  /** Of the mode that is planned for: its backend exports it. */
  readonly semantics: ModeSemantics;
  /** Absent: every service is ours with all its endpoints. */
  readonly filter?: EndpointFilter;
}

/** The part of a family's plan that follows from the options only. */
export function nodePlan(options: PlannerOptions, family: IPFamily): NodePlan {
  const nodeAddresses = options.nodeAddresses?.[family];
  const otherNodes = options.otherNodes?.[family];
  const serviceCIDRs = options.serviceCIDRs?.[family];
  const excluded = excludedClients(options, family);
  return {
    detector: options.detectors[family] ?? { kind: "none" },
    nodePortAddresses: options.nodePortAddresses[family] ?? { kind: "all" },
    ...(nodeAddresses === undefined ? undefined : { nodeAddresses }),
    ...(otherNodes === undefined ? undefined : { otherNodes }),
    ...(serviceCIDRs === undefined ? undefined : { serviceCIDRs }),
    ...(excluded === undefined ? undefined : { excludedClients: excluded }),
    ...(options.masqueradeAll ? { masqueradeAll: true } : undefined),
    ...(options.resetStaleTCP ? { resetStaleTCP: true } : undefined),
  };
}

/**
 * The clients that another network serves at the ClusterIPs of its services; undefined: none, or the mode cannot
 * distinguish them.
 */
export function excludedClients(
  { filter, semantics }: PlannerOptions,
  family: IPFamily,
): readonly string[] | undefined {
  const cidrs = semantics.excludesClients ? filter?.excludedClients?.(family) : undefined;
  return cidrs === undefined || cidrs.length === 0 ? undefined : cidrs;
}

/** Whether the plans of all services may follow differently from the two; of the filter nothing is said. */
export function replansServices(before: PlannerOptions, after: PlannerOptions): boolean {
  return !equal(servicePart(before), servicePart(after));
}

/** Of the detectors only whether there is one: how it recognizes pods is the node's part. */
function servicePart(options: PlannerOptions): unknown {
  const { nodeName, zone, families, nodeIPs, masqueradeAll, externalIPs, nodeHints, semantics, resetStaleTCP } =
    options;
  const detects = families.map((family) => (options.detectors[family]?.kind ?? "none") !== "none");
  return {
    nodeName,
    zone,
    families,
    nodeIPs,
    masqueradeAll,
    externalIPs,
    nodeHints,
    semantics,
    resetStaleTCP,
    detects,
  };
}
