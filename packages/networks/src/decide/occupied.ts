import { addressRange, addressWords, familyOf, inRange, isWithin } from "@fairlead/base";
import type { ServicesView } from "../services/view.ts";
import type { Claim } from "./claim.ts";

type Occupied = Pick<Claim, "side" | "cidr">;

/**
 * Tells whether an endpoint lies in a CIDR. One that lies in an own CIDR inside of another network's is ours, and does
 * not count; in an own CIDR all count.
 *
 * @param own canonical
 */
export function occupation(own: readonly string[], services: ServicesView): (claim: Occupied) => boolean {
  const ours = own.map(addressRange);
  return ({ side, cidr }) => {
    const keys = services.within(cidr);
    const whole = addressRange(cidr);
    const inside = side === "own" || keys.size === 0 ? [] : ours.filter((range) => isWithin(range, whole));
    if (inside.length === 0) return keys.size > 0;
    const family = familyOf(cidr);
    const isTheirs = (address: string) => {
      const words = addressWords(address);
      return inRange(whole, words) && !inside.some((range) => inRange(range, words));
    };
    return [...keys].some((key) => services.addresses(key, family).some(isTheirs));
  };
}
