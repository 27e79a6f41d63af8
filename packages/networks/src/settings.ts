/** What the configuration says of networks. */
import { containsCIDR } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import { CIDRSides, type FilterOptions } from "@fairlead/endpoint-filter";
import type { ServiceRule } from "./rules.ts";
import type { NetworkSource } from "./source.ts";

/** On whose side a CIDR is: another network's, or this proxy's own. */
export type Side = "excluded" | "own";

/** CIDRs that an operator wrote, canonical. */
export type StaticCIDRs = Readonly<Record<Side, readonly string[]>>;

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

/**
 * The written CIDRs of ours that decide for endpoints. One within a CIDR that the operator gave to another network says
 * nothing of endpoints: it is there for masquerading.
 */
export function endpointOwn({ written, sources, within }: CIDRSettings): readonly string[] {
  const theirs = [...written.excluded, ...sources.excluded.flatMap(({ id }) => within?.get(id) ?? [])];
  return written.own.filter((cidr) => !theirs.some((wide) => containsCIDR(wide, cidr)));
}

/** The written CIDRs that decide for endpoints, each on its side. */
export function writtenSides(settings: CIDRSettings): CIDRSides {
  return CIDRSides.of(settings.written.excluded, endpointOwn(settings));
}

type CIDRSettings = Pick<NetworksSettings, "written" | "sources" | "within">;
