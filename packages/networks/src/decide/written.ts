import { containsCIDR } from "@fairlead/base";
import { CIDRSides } from "@fairlead/endpoint-filter";
import type { Side } from "./claim.ts";

/** CIDRs that an operator wrote, canonical. */
export type StaticCIDRs = Readonly<Record<Side, readonly string[]>>;

/**
 * The written ones that decide for endpoints. An own CIDR within an excluded one says nothing of endpoints, as without
 * any source: it is there for masquerading.
 */
export function writtenSides({ own, excluded }: StaticCIDRs): CIDRSides {
  const besides = own.filter((cidr) => !excluded.some((wide) => containsCIDR(wide, cidr)));
  return CIDRSides.of(excluded, besides);
}
