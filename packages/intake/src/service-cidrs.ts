import { addressBytes, containsCIDR, prefixLengthOf } from "@fairlead/base";
import type { ServiceCIDR } from "@fairlead/core";
import type { ObjectChange, ObjectKey } from "@fairlead/watch";

/**
 * Each once, by address, and without those that lie within another: a set of the kernel refuses ranges that overlap,
 * and ServiceCIDRs may.
 *
 * @param cidrs canonical, of one family
 */
export function outermost(cidrs: readonly string[]): readonly string[] {
  const distinct = Array.from(new Set(cidrs), (cidr) => ({
    cidr,
    first: addressBytes(cidr.slice(0, cidr.indexOf("/"))),
    length: prefixLengthOf(cidr),
  }));
  distinct.sort((a, b) => Buffer.compare(a.first, b.first) || a.length - b.length);
  const kept: string[] = [];
  // The widest of those that begin alike comes first, so that only the last one kept can hold the next.
  for (const { cidr } of distinct) {
    const last = kept.at(-1);
    if (last === undefined || !containsCIDR(last, cidr)) kept.push(cidr);
  }
  return kept;
}

/**
 * What all ServiceCIDR objects say together; one CIDR may stand in several of them.
 *
 * @param onCIDRs called once the first list is in, and whenever an object comes, changes or goes after that
 */
export function followServiceCIDRs(onCIDRs: (cidrs: readonly string[]) => void) {
  const objects = new Map<ObjectKey, readonly string[]>();
  let synced = false;
  return (change: ObjectChange<ServiceCIDR>): void => {
    if (change.type === "upsert") objects.set(change.key, change.object.cidrs);
    else if (change.type === "delete") objects.delete(change.key);
    else synced = true;
    if (synced) onCIDRs([...objects.values()].flat());
  };
}
