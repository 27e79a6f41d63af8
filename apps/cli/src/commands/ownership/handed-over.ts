import { containsCIDR } from "@fairlead/base";
import { filterBySides } from "@fairlead/endpoint-filter";
import type { PlannedSetup } from "../../inputs/planned.ts";

/** What changes when a CIDR is accepted. */
export interface HandOver {
  /** `10.144.8.0/22 of Subnet/vpn` */
  readonly held: readonly string[];
  /** `default/web IPv4: ours -> foreign` */
  readonly services: readonly string[];
}

/** Which held CIDRs lie in the accepted one, and which services they take. */
export function handOver({ planned, setup, learned }: PlannedSetup, cidr: string): HandOver {
  const held = (learned?.report.cidrs ?? []).filter((one) => one.stage === "held" && containsCIDR(cidr, one.cidr));
  if (learned === undefined || held.length === 0) return { held: [], services: [] };
  const { sides: before, neutralAddresses } = learned.decision;
  const sides = held.reduce((all, one) => all.with(one.cidr, "excluded"), before);
  const { decide } = filterBySides(sides, { ...setup.filter, neutralAddresses });
  const services = Array.from(planned.planner.ownerships()).flatMap(({ service, family, decision }) => {
    const object = planned.state.service(service);
    if (decision.decidedBy !== "endpoints" || object === undefined) return [];
    const slices = Array.from(planned.state.slices(service)).filter((slice) => slice.family === family);
    const endpoints = slices.flatMap((slice) => slice.endpoints);
    const { ownership } = decide(object, family, endpoints, undefined);
    return ownership === decision.ownership ? [] : [`${service} ${family}: ${decision.ownership} -> ${ownership}`];
  });
  return { held: held.map((one) => `${one.cidr} of ${one.objects.join(", ")}`), services: services.sort() };
}
