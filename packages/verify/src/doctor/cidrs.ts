import { addressRange, inRange } from "@fairlead/trace";

/** Whether one of the networks is within the other. */
export function overlap(a: string, b: string): boolean {
  return contains(a, b) || contains(b, a);
}

/** Whether the first network has the second one in it, or is it. */
export function contains(outer: string, inner: string): boolean {
  if (outer.includes(":") !== inner.includes(":") || lengthOf(outer) > lengthOf(inner)) return false;
  return inRange(addressRange(outer), addressRange(inner).words);
}

function lengthOf(cidr: string): number {
  return Number(cidr.split("/")[1] ?? (cidr.includes(":") ? 128 : 32));
}
