import { type AddressRange, addressRange, addressWords, familyOf, inRange, isWithin } from "@fairlead/base";
import type { ServicesView } from "../services/view.ts";
import { type Claim, countsAs } from "./claim.ts";
import type { ClaimTable } from "./claim-table.ts";

type Occupied = Pick<Claim, "side" | "cidr">;

/**
 * Tells whether an endpoint lies in a CIDR. One that lies in an own CIDR inside of another network's is ours, and does
 * not count; in an own CIDR all count.
 */
export function occupation(claims: ClaimTable, services: ServicesView): (claim: Occupied) => boolean {
  let own: readonly AddressRange[] | undefined;
  return ({ side, cidr }) => {
    const keys = services.within(cidr);
    if (side === "own" || keys.size === 0) return keys.size > 0;
    const whole = addressRange(cidr);
    own ??= Array.from(claims.all())
      .filter(countsAs("own"))
      .map((claim) => addressRange(claim.cidr));
    const inside = own.filter((range) => isWithin(range, whole));
    if (inside.length === 0) return true;
    const family = familyOf(cidr);
    const isTheirs = (address: string) => {
      const words = addressWords(address);
      return inRange(whole, words) && !inside.some((range) => inRange(range, words));
    };
    return [...keys].some((key) => services.addresses(key, family).some(isTheirs));
  };
}
