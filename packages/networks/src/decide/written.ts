import { containsCIDR } from "@fairlead/base";
import { CIDRSides } from "@fairlead/endpoint-filter";
import type { Side } from "./claim.ts";

/** CIDRs that an operator wrote, canonical. */
export type StaticCIDRs = Readonly<Record<Side, readonly string[]>>;

/**
 * The written CIDRs of ours that decide for endpoints. One within a CIDR that the operator gave to another network says
 * nothing of endpoints: it is there for masquerading.
 *
 * @param within entries of excluded sources
 */
export function endpointOwn({ own, excluded }: StaticCIDRs, within: readonly string[] = []): readonly string[] {
  return own.filter((cidr) => ![...excluded, ...within].some((wide) => containsCIDR(wide, cidr)));
}

/** The written CIDRs that decide for endpoints, each on its side. */
export function writtenSides(written: StaticCIDRs, within: readonly string[] = []): CIDRSides {
  return CIDRSides.of(written.excluded, endpointOwn(written, within));
}
