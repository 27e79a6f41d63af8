import { fieldsOf, isAbsent, itemsOf, parseCIDRLeniently, type RawObject } from "@fairlead/base";
import { compact } from "../data/compact.ts";
import type { ProblemList } from "../problem.ts";
import { readAddress } from "./addresses.ts";
import { UNUSABLE } from "./special-address.ts";

/**
 * status.loadBalancer.ingress addresses whose traffic comes here with the address still on it (KEP-1860: ipMode VIP).
 * Loopback and link-local ones are left to those who hand them out: no other program may write the status.
 */
export function readIngressAddresses(raw: RawObject, problems: ProblemList): readonly string[] {
  const ingress = itemsOf(fieldsOf(fieldsOf(raw["status"])["loadBalancer"])["ingress"]);
  const found = new Set<string>();
  ingress.forEach((item, i) => {
    const { ip, ipMode } = fieldsOf(item);
    if (!isAbsent(ipMode) && ipMode !== "VIP") return;
    const address = readAddress(`status.loadBalancer.ingress[${i}].ip`, ip, UNUSABLE, problems);
    if (address !== undefined) found.add(address.text);
  });
  return compact([...found]);
}

/**
 * spec.loadBalancerSourceRanges, trimmed of the white space that the API lets pass. A range of length 0 admits every
 * client of its family, so it replaces that family's ranges.
 */
export function readSourceRanges(spec: RawObject, problems: ProblemList): readonly string[] {
  const ranges = itemsOf(spec["loadBalancerSourceRanges"]).flatMap((value, i) => {
    const text = typeof value === "string" ? value.trim() : undefined;
    if (text === "") return [];
    const cidr = text === undefined ? undefined : parseCIDRLeniently(text);
    if (cidr !== undefined) return [cidr];
    problems.add(`spec.loadBalancerSourceRanges[${i}]`, value, "must be a CIDR, as 192.0.2.0/24");
    return [];
  });
  const open = new Set(ranges.filter((range) => range.prefixLength === 0).map((range) => range.family));
  const closed = ranges.filter((range) => !open.has(range.family)).map((range) => range.text);
  return compact([...new Set(closed)]);
}
