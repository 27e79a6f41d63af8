import type { AddressWords } from "@fairlead/base";
import type { Match, NameMatch } from "@fairlead/netfilter";
import { type RuleContext, undecidable } from "./rule-context.ts";

type AddressTypes = Extract<Match, { readonly kind: "addrtype" }>;

/** `-m addrtype`, as far as the kernel's answer follows from addresses and not from routes. */
export function matchesAddressTypes(match: AddressTypes, place: RuleContext): boolean {
  const { source, destination } = place.walk;
  return matchesType(match.srcType, source.words, place) && matchesType(match.dstType, destination.words, place);
}

function matchesType(match: NameMatch | undefined, address: AddressWords, place: RuleContext): boolean {
  if (match === undefined) return true;
  const types = match.value.split(",");
  const foreign = types.find((type) => !KNOWN.has(type));
  if (foreign !== undefined) throw undecidable(place, `the tracer cannot decide whether an address is ${foreign}`);
  const matched =
    place.walk.family === "IPv4" ? types.includes(ipv4Type(address, place)) : isIPv6Type(types, address, place);
  return matched !== (match.negated === true);
}

const KNOWN: ReadonlySet<string> = new Set(["LOCAL", "UNICAST", "MULTICAST", "BROADCAST"]);

/** An IPv4 address has one type (inet_dev_addr_type). */
function ipv4Type(address: AddressWords, { host }: RuleContext): string {
  if (host.isBroadcast(address)) return "BROADCAST";
  if (host.isMulticast(address)) return "MULTICAST";
  return host.isLocal(address) ? "LOCAL" : "UNICAST";
}

/**
 * An IPv6 address must be of every type that is asked for, and the host's own are unicast too (match_type6 of
 * xt_addrtype).
 */
function isIPv6Type(types: readonly string[], address: AddressWords, { host }: RuleContext): boolean {
  const multicast = host.isMulticast(address);
  if (types.includes("MULTICAST") && !multicast) return false;
  if (types.includes("UNICAST") && multicast) return false;
  return types.includes("LOCAL") ? host.isLocal(address) : !types.includes("BROADCAST");
}
