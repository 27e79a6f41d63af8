import type { EndpointFilter, ServiceKey } from "@fairlead/core";
import type { CIDRSides, FilterOptions, NeutralAddresses } from "@fairlead/endpoint-filter";
import type { NetworkSource } from "../sources/source.ts";
import type { Side } from "./claim.ts";
import type { Conflict } from "./conflicts.ts";
import type { ServiceRule } from "./service-rules.ts";
import type { StaticCIDRs } from "./written.ts";

/** What decides which CIDRs count. */
export interface NetworksSettings {
  /** Where the ConfigMap with what operators accepted is. */
  readonly consentNamespace: string;
  /** CIDRs of the command line and the configuration file. */
  readonly written: StaticCIDRs;
  /** No source is listed twice, on either side. */
  readonly sources: Readonly<Record<Side, readonly NetworkSource[]>>;
  /** By the id of a source the CIDRs in which its objects are believed, canonical. Absent: it has no such limit. */
  readonly within?: ReadonlyMap<string, readonly string[]>;
  /** What decides in addition to the CIDRs. */
  readonly filter: Pick<
    FilterOptions,
    "mixedServices" | "excludedFrontends" | "ownershipAnnotation" | "masqueradeToExcluded"
  >;
  /** `namespace/name` of services that are never left unanswered, in addition to the cluster's DNS. Default: none. */
  readonly protectedServices?: readonly ServiceKey[];
  /** Decide before the CIDRs, the first that a service meets. Default: none. */
  readonly rules?: readonly ServiceRule[];
  /** Milliseconds that changes are gathered for. */
  readonly debounceMs: number;
  /** Milliseconds that a CIDR stays in effect after the last object that defined it is gone. */
  readonly removalDelayMs: number;
}

/** What holds now. */
export interface NetworksDecision {
  /** The CIDRs that count; the longest prefix decides. The same ones as before where nothing changed. */
  readonly sides: CIDRSides;
  /** Those of each side, in canonical order; made when they are asked for. */
  readonly excludeCIDRs: readonly string[];
  /** Those of this cluster's own network. */
  readonly ownCIDRs: readonly string[];
  /** Decides by all this; the same one as before where nothing changed. */
  readonly filter: EndpointFilter;
  /** All of our own CIDRs, for telling local traffic; the same list while they are the same. */
  readonly clusterCIDRs: readonly string[];
  /** Addresses that are in no network, whatever the CIDRs say. */
  readonly neutralAddresses: NeutralAddresses;
  /** Services with an endpoint where something changed with this decision, or in a namespace whose labels did. */
  readonly touched: ReadonlySet<ServiceKey>;
  /** CIDRs within one of the other side. */
  readonly conflicts: readonly Conflict[];
}
