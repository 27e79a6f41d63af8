import type { CIDR_SOURCES } from "./cidr-source-names.ts";

/** What every source may have in addition to its own settings. */
interface SourceSettings {
  /** CIDRs in which its objects are believed, as the operator wrote them: the filter itself checks them. */
  readonly within?: readonly string[] | undefined;
  /** The one object that is read, both or neither. */
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** Where CIDRs are learned from: a name with its settings, or any resource of the API (`plural.version.group`). */
export type CIDRSource = SourceSettings &
  (
    | { readonly source: (typeof CIDR_SOURCES)[number]; readonly vpcs?: readonly string[] | undefined }
    | { readonly source: "custom"; readonly resource: string; readonly fields: readonly string[] }
  );

/** Says of Services who owns them: by an annotation of theirs, or a label of their namespace. */
export type ServiceRuleSetting = ({ readonly annotation: string } | { readonly namespaceLabel: string }) & {
  /** The value must be one of these. */
  readonly in?: readonly string[];
  /** The value must be none of these. */
  readonly notIn?: readonly string[];
  /** Nor the name of kube-ovn's default VPC. */
  readonly notInDefaultVPC?: true;
  readonly ownership: "ours" | "foreign";
  /** What of a foreign Service is left to its network. Default: all of it. */
  readonly excludedFrontends?: MultiCNISettings["excludedFrontends"];
};

/** How changes of learned CIDRs take effect. */
export interface CIDRChanges {
  /** Milliseconds that changes are gathered for. */
  readonly debounceMs: number;
  /** Milliseconds that a CIDR stays in effect after the last object that defined it is gone. */
  readonly removalDelayMs: number;
  /** 0…100: an alarm is raised where learned networks and rules make more of the services foreign. */
  readonly maxForeignPercent: number;
}

/** What the endpoint filter is made from. The CIDRs are as the operator wrote them: the filter itself checks them. */
export interface MultiCNISettings {
  /** CIDRs whose services another network serves. */
  readonly excludeClusterCIDRs: readonly string[];
  /** No source is listed twice, on either side. */
  readonly excludeCIDRsFrom: readonly CIDRSource[];
  /** Sources of this cluster's own CIDRs; no source is listed twice. */
  readonly clusterCIDRsFrom: readonly CIDRSource[];
  /** How changes of learned CIDRs take effect. */
  readonly cidrChanges: CIDRChanges;
  /** What a service with endpoints in both networks gets: its own endpoints, nothing, or all of them. */
  readonly mixedServices: "own-endpoints" | "skip" | "all";
  /** Which frontends of another network's services are left alone, where no rule says it. */
  readonly excludedFrontends: "all" | "cluster-ip" | "excluded-clients";
  /** Undefined: as `excludedFrontends` has it. */
  readonly masqueradeToExcluded?: boolean | undefined;
  /** The annotation `fairlead.dev/ownership` decides. */
  readonly ownershipAnnotation: boolean;
  /** Decide after that annotation and before the CIDRs; the first that a Service meets. */
  readonly serviceRules: readonly ServiceRuleSetting[];
  /** `namespace/name` of Services that are never left unanswered, in addition to the cluster's DNS. */
  readonly protectedServices: readonly string[];
  /** Where the ConfigMap `fairlead-networks` is; undefined: in the namespace of the pod. */
  readonly consentNamespace?: string | undefined;
}
