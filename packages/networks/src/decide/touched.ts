import { hostCIDR } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import type { ServicesView } from "../services/view.ts";
import type { NetworksDecision } from "./types.ts";

type Decided = Omit<NetworksDecision, "touched">;

/** The services with an endpoint where two decisions differ, in steps of a CIDR. */
export function* touchedBy(
  before: Decided | undefined,
  after: Decided,
  services: ServicesView,
): Generator<void, ReadonlySet<ServiceKey>> {
  const cidrs = [
    ...differing(before?.excludeCIDRs ?? [], after.excludeCIDRs),
    ...differing(before?.ownCIDRs ?? [], after.ownCIDRs),
    ...differing(before?.neutralAddresses ?? [], after.neutralAddresses).map(hostCIDR),
  ];
  const touched = new Set<ServiceKey>();
  for (const cidr of cidrs) {
    for (const key of services.within(cidr)) touched.add(key);
    yield;
  }
  return touched;
}

function differing(a: Iterable<string>, b: Iterable<string>): readonly string[] {
  const before = new Set(a);
  const after = new Set(b);
  return [...[...before].filter((one) => !after.has(one)), ...[...after].filter((one) => !before.has(one))];
}
