import { hostCIDR } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import type { CIDRSides } from "@fairlead/endpoint-filter";
import type { ServicesView } from "../services/view.ts";

interface Decided {
  readonly sides: CIDRSides;
  readonly neutralAddresses: ReadonlySet<string>;
}

/**
 * The services with an endpoint where two decisions differ, in steps of a CIDR.
 *
 * @param cidrs those whose side may differ
 */
export function* touchedBy(
  before: Decided,
  after: Decided,
  cidrs: Iterable<string>,
  services: ServicesView,
): Generator<void, Set<ServiceKey>> {
  const nodes = differing(before.neutralAddresses, after.neutralAddresses).map(hostCIDR);
  const differ = Array.from(cidrs).filter((cidr) => before.sides.side(cidr) !== after.sides.side(cidr));
  const touched = new Set<ServiceKey>();
  for (const cidr of [...differ, ...nodes]) {
    for (const key of services.within(cidr)) touched.add(key);
    yield;
  }
  return touched;
}

function differing(before: ReadonlySet<string>, after: ReadonlySet<string>): readonly string[] {
  if (before === after) return [];
  const gone = Array.from(before).filter((one) => !after.has(one));
  return [...gone, ...Array.from(after).filter((one) => !before.has(one))];
}
