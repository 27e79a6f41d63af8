import { hostCIDR } from "@fairlead/base";
import type { ServiceKey } from "@fairlead/core";
import type { ServicesView } from "../services/view.ts";
import type { NetworksDecision } from "./types.ts";

type Decided = Omit<NetworksDecision, "touched">;

/** The services with an endpoint where two decisions differ. */
export function touchedBy(
  before: Decided | undefined,
  after: Decided,
  services: ServicesView,
): ReadonlySet<ServiceKey> {
  const cidrs = [
    ...differing(before?.excludeCIDRs ?? [], after.excludeCIDRs),
    ...differing(before?.ownCIDRs ?? [], after.ownCIDRs),
    ...differing(before?.neutralAddresses ?? [], after.neutralAddresses).map(hostCIDR),
  ];
  return new Set(cidrs.flatMap((cidr) => [...services.within(cidr)]));
}

function differing(a: Iterable<string>, b: Iterable<string>): readonly string[] {
  const before = new Set(a);
  const after = new Set(b);
  return [...[...before].filter((one) => !after.has(one)), ...[...after].filter((one) => !before.has(one))];
}
