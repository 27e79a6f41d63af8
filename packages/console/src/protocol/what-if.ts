import type { IPFamily, Ownership, ServiceKey } from "@fairlead/core";
import type { LearnedOnce } from "@fairlead/intake";

/** Where packets end, with shares; or why that is unknown. */
export type FateData = { readonly ways: Readonly<Record<string, number>> } | { readonly problem: string };

/** A service that would get another owner in a family. */
export interface OwnerMove {
  readonly service: ServiceKey;
  readonly family: IPFamily;
  readonly before: Ownership;
  readonly after: Ownership;
  readonly why: string;
}

type ReportedCIDR = LearnedOnce["report"]["cidrs"][number];

/**
 * A learned CIDR that something else would become of; without `before` no object defines it now, without `after` none
 * would.
 */
export interface CIDRMove extends Pick<ReportedCIDR, "cidr" | "side" | "source" | "objects" | "why"> {
  readonly before?: ReportedCIDR["stage"];
  readonly after?: ReportedCIDR["stage"];
}

/** What would be learned of networks that is not learned now. */
export interface WhatIfNetworks {
  readonly cidrs: readonly CIDRMove[];
  /** What is wrong with objects: `Subnet/typo: spec.cidrBlock …` */
  readonly problems: readonly string[];
  /** Sources that cannot be read, and why: what they say is in neither plan. */
  readonly unread: readonly string[];
}

/** `POST api/what-if`: the changed services, and what `fairlead diff --traffic-only -o json` says of them by family. */
export interface WhatIfAnswer {
  readonly planAt: number;
  readonly node: string;
  /** Those of which anything is planned differently. */
  readonly services: readonly string[];
  readonly owners: readonly OwnerMove[];
  /** Absent: nothing is learned, neither without nor with the change. */
  readonly networks?: WhatIfNetworks;
  /** Absent: the services are more than are compared while a user waits. */
  readonly families?: readonly {
    readonly family: IPFamily;
    readonly traffic: {
      readonly compared: number;
      readonly changes: readonly {
        readonly destination: string;
        readonly from: readonly string[];
        readonly before: FateData;
        readonly after: FateData;
      }[];
    };
  }[];
}
