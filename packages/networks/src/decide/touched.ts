import { hostCIDR } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import type { CIDRSides, NeutralAddresses } from "@fairlead/endpoint-filter";
import type { ServicesView } from "../services/view.ts";

interface Decided {
  readonly sides: CIDRSides;
  readonly neutralAddresses: NeutralAddresses;
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

function differing(before: NeutralAddresses, after: NeutralAddresses): readonly string[] {
  if (before === after) return [];
  const addresses = new Set([...before.keys(), ...after.keys()]);
  return [...addresses].filter((address) => nodesAt(before, address) !== nodesAt(after, address));
}

function nodesAt(neutral: NeutralAddresses, address: string): string {
  const nodes = neutral.get(address) ?? [];
  return nodes === "any" ? " any" : [...nodes].sort().join();
}
