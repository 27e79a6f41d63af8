import type { ConntrackState, Match, PortMatch, TCPFlagsMatch } from "@fairlead/netfilter";
import { matchesAddressTypes } from "./address-type.ts";
import { isDNATed } from "./conntrack.ts";
import { matchesOther } from "./other-matches.ts";
import { matchesRecent } from "./recent.ts";
import { type RuleContext, undecidable } from "./rule-context.ts";
import { virtualServerKey } from "./virtual-servers.ts";
import { endpointOf } from "./walk.ts";

type MatchOf<Kind extends Match["kind"]> = Extract<Match, { readonly kind: Kind }>;

/** xt_statistic compares 31 random bits with this many. */
const PROBABILITY_UNIT = 0x80000000;

/**
 * How probable it is that the packet matches: 0 and 1 but for random choices. `-m recent --set` notes the address.
 *
 * @throws TraceError for a match that the tracer doesn't know
 */
export function matchProbability(match: Match, place: RuleContext): number {
  if (match.kind === "statistic") return Math.round(Number(match.probability) * PROBABILITY_UNIT) / PROBABILITY_UNIT;
  return matches(match, place) ? 1 : 0;
}

function matches(match: Exclude<Match, MatchOf<"statistic">>, place: RuleContext): boolean {
  const { walk } = place;
  switch (match.kind) {
    case "comment":
    case "nfacct":
      return true;
    case "tcp":
      return matchesPorts(match, place) && matchesFlags(match.flags, place);
    case "udp":
    case "sctp":
      return matchesPorts(match, place);
    case "conntrack":
      return match.states.some((state) => statesOf(match, place).includes(state)) !== (match.negated === true);
    case "mark":
      return ((walk.mark & match.mask) >>> 0 === match.value) !== (match.negated === true);
    case "addrtype":
      return matchesAddressTypes(match, place);
    case "recent":
      return matchesRecent(match, place);
    case "set":
      return matchesSet(match, place);
    case "physdev":
      return isBridged(match, place) !== (match.negated === true);
    case "ipvs":
      return (
        walk.server !== undefined &&
        virtualServerKey(walk.server) === `${match.protocol} ${match.address} ${match.port}`
      );
    case "unknown":
      return matchesOther(match, place);
    case "unreadable":
      throw undecidable(place, "the tracer cannot read this rule");
  }
}

function matchesPorts(match: MatchOf<"tcp" | "udp" | "sctp">, { walk }: RuleContext): boolean {
  if (walk.protocol !== match.kind) return false;
  return matchesPort(match.sport, walk.source.port) && matchesPort(match.dport, walk.destination.port);
}

function matchesPort(match: PortMatch | undefined, port: number | undefined): boolean {
  if (match === undefined) return true;
  return port !== undefined && (port >= match.from && port <= match.to) !== (match.negated === true);
}

/** The first packet of a connection has SYN only; of later ones it is unknown. */
function matchesFlags(match: TCPFlagsMatch | undefined, place: RuleContext): boolean {
  if (match === undefined) return true;
  if (place.walk.state !== "NEW")
    throw undecidable(place, "the flags of packets are known of a connection's first only");
  return (match.set.join() === (match.asked.includes("SYN") ? "SYN" : "")) !== (match.negated === true);
}

/** The table raw comes before connection tracking: there a packet has no connection (xt_conntrack calls it INVALID). */
function statesOf(match: MatchOf<"conntrack">, { walk, chain }: RuleContext): ConntrackState[] {
  if (chain.table === "raw" && !walk.looped) return ["INVALID"];
  if (match.module === "state") return [walk.state];
  return [walk.state, ...(walk.masqueraded ? (["SNAT"] as const) : []), ...(isDNATed(walk) ? (["DNAT"] as const) : [])];
}

function matchesSet(match: MatchOf<"set">, place: RuleContext): boolean {
  const { walk, host } = place;
  const set = host.environment.sets?.get(match.name);
  if (set === undefined) throw undecidable(place, `the environment has no set "${match.name}"`);
  const query = {
    family: walk.family,
    protocol: walk.protocol,
    source: endpointOf(walk.source),
    destination: endpointOf(walk.destination),
    flags: match.flags,
  };
  return set.matches(query) !== (match.negated === true);
}

function isBridged(match: MatchOf<"physdev">, { host }: RuleContext): boolean {
  const { in: byPort = false, out: toPort = false } = host.environment.physdev ?? {};
  if (match.is === "bridged") return byPort && toPort;
  return match.is === "in" ? byPort : toPort;
}
