import { containsCIDR } from "@fairlead/base";
import type { AddressMatch, Match, NameMatch, PortMatch, Rule } from "./rule.ts";

/** True when it is certain that no packet matches both rules: other protocols, addresses, interfaces or ports. */
export function disjoint(a: Rule, b: Rule): boolean {
  return (
    disjointNames(a.protocol, b.protocol) ||
    disjointAddresses(a.destination, b.destination) ||
    disjointAddresses(a.source, b.source) ||
    disjointInterfaces(a.inInterface, b.inInterface) ||
    disjointInterfaces(a.outInterface, b.outInterface) ||
    disjointPorts(portOf(a, "dport"), portOf(b, "dport")) ||
    disjointPorts(portOf(a, "sport"), portOf(b, "sport"))
  );
}

function disjointNames(a: NameMatch | undefined, b: NameMatch | undefined): boolean {
  if (a === undefined || b === undefined || (a.negated === true && b.negated === true)) return false;
  return (a.negated === true) === (b.negated === true) ? a.value !== b.value : a.value === b.value;
}

function disjointInterfaces(a: NameMatch | undefined, b: NameMatch | undefined): boolean {
  const prefix = [a, b].some((match) => match?.value.endsWith("+") === true);
  return !prefix && disjointNames(a, b);
}

function disjointAddresses(a: AddressMatch | undefined, b: AddressMatch | undefined): boolean {
  if (a === undefined || b === undefined || (a.negated === true && b.negated === true)) return false;
  if (a.negated === true) return containsCIDR(a.cidr, b.cidr);
  if (b.negated === true) return containsCIDR(b.cidr, a.cidr);
  return !containsCIDR(a.cidr, b.cidr) && !containsCIDR(b.cidr, a.cidr);
}

function portOf(rule: Rule, field: "sport" | "dport"): PortMatch | undefined {
  return rule.matches.find(hasPorts)?.[field];
}

function hasPorts(match: Match): match is Extract<Match, { readonly kind: "tcp" | "udp" | "sctp" }> {
  return match.kind === "tcp" || match.kind === "udp" || match.kind === "sctp";
}

function disjointPorts(a: PortMatch | undefined, b: PortMatch | undefined): boolean {
  if (a === undefined || b === undefined || (a.negated === true && b.negated === true)) return false;
  if (a.negated === true) return b.from >= a.from && b.to <= a.to;
  if (b.negated === true) return a.from >= b.from && a.to <= b.to;
  return a.to < b.from || b.to < a.from;
}
