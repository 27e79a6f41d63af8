/** What each match of iptables says of a packet. */

import { type AddressWords, addressWords, inRange, masked, wordsText } from "@fairlead/base";
import type { ConntrackState, Match, NameMatch, PortMatch, TCPFlagsMatch } from "@fairlead/netfilter";
import type { CompiledAddress, CompiledChain, CompiledRule } from "./compile.ts";
import { type Host, virtualServerKey } from "./host.ts";
import { TraceError } from "./outcome.ts";
import { outInterface } from "./route.ts";
import { endpointOf, isDNATed, type PacketEnd, type Walk } from "./walk.ts";

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

/** Whether addresses, interfaces and protocol match: the kernel asks them before all else (ip_packet_match). */
export function matchesHeader(place: RuleContext): boolean {
  const { walk, rule } = place;
  return (
    matchesAddress(rule.destination, walk.destination.words) &&
    matchesAddress(rule.source, walk.source.words) &&
    matchesProtocol(rule.rule.protocol, walk.protocol) &&
    matchesInterface(rule.rule.inInterface, walk.inInterface) &&
    matchesOutInterface(place) &&
    // Packets here are whole: connection tracking puts fragments together before any table.
    rule.rule.fragment?.negated !== false
  );
}

export interface RuleContext {
  readonly walk: Walk;
  readonly host: Host;
  readonly chain: CompiledChain;
  readonly rule: CompiledRule;
}

export function undecidable({ chain, rule }: RuleContext, problem: string): TraceError {
  const { table, name } = chain;
  return TraceError.ofRule({ table, chain: name, index: rule.index, rule: rule.rule }, problem);
}

type MatchOf<Kind extends Match["kind"]> = Extract<Match, { readonly kind: Kind }>;

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

function matchesAddress(match: CompiledAddress | undefined, address: AddressWords): boolean {
  return match === undefined || inRange(match.range, address) !== match.negated;
}

function matchesProtocol(match: NameMatch | undefined, protocol: string): boolean {
  return match === undefined || (match.value === protocol) !== (match.negated === true);
}

/** A trailing + stands for any rest. */
function matchesInterface(match: NameMatch | undefined, name: string): boolean {
  if (match === undefined) return true;
  const { value } = match;
  const equal = value.endsWith("+") ? name.startsWith(value.slice(0, -1)) : name === value;
  return equal !== (match.negated === true);
}

function matchesOutInterface(place: RuleContext): boolean {
  const match = place.rule.rule.outInterface;
  if (match === undefined) return true;
  const name = outInterface(place.walk, place.host);
  if (name === undefined) throw undecidable(place, "the outgoing interface is not known");
  return matchesInterface(match, name);
}

type AddressTypes = Extract<Match, { readonly kind: "addrtype" }>;

/** `-m addrtype`, as far as the kernel's answer follows from addresses and not from routes. */
function matchesAddressTypes(match: AddressTypes, place: RuleContext): boolean {
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

type Recent = Extract<Match, { readonly kind: "recent" }>;

const FULL_MASKS: ReadonlySet<string> = new Set(["255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]);

/**
 * `--set` always matches and notes the address; `--rcheck` asks whether it was seen, within so many seconds
 * (xt_recent).
 */
function matchesRecent(match: Recent, { walk, host }: RuleContext): boolean {
  const address = sideKey(match, match.side === "rsource" ? walk.source : walk.destination);
  if (match.op === "set") {
    walk.seen = { item: { list: match.name, address }, before: walk.seen };
    return true;
  }
  if (seenOnTheWay(walk, match.name, address)) return true;
  const ages = host.environment.recent?.get(match.name)?.get(address) ?? [];
  return ages.some((age) => match.seconds === undefined || match.seconds === 0 || age <= match.seconds);
}

function sideKey(match: Recent, { address, words }: PacketEnd): string {
  if (match.mask === undefined || FULL_MASKS.has(match.mask)) return address;
  return wordsText(masked(words, addressWords(match.mask)));
}

function seenOnTheWay(walk: Walk, list: string, address: string): boolean {
  for (let at = walk.seen; at !== undefined; at = at.before) {
    if (at.item.list === list && at.item.address === address) return true;
  }
  return false;
}

type Unknown = Extract<Match, { readonly kind: "unknown" }>;

/**
 * Matches that rules are not typed for but that firewalls are full of: several ports at once.
 *
 * @throws TraceError for all others
 */
function matchesOther(match: Unknown, place: RuleContext): boolean {
  const decided = match.module === "multiport" ? multiport(match, place) : undefined;
  if (decided !== undefined) return decided;
  throw undecidable(place, `the tracer does not know the match "${match.module}", at least with these options`);
}

/** `[!] --dports 80,443,8000:8080`; undefined: none of the forms that iptables-save prints. */
function multiport({ args }: Unknown, { walk }: RuleContext): boolean | undefined {
  const negated = args[0] === "!";
  const [option, list = "", ...more] = negated ? args.slice(1) : args;
  const sides = {
    "--sports": [walk.source],
    "--dports": [walk.destination],
    "--ports": [walk.source, walk.destination],
  };
  if (more.length > 0 || !isKeyOf(sides, option)) return undefined;
  const ranges = list.split(",").map((part) => part.split(":").map(Number));
  const listed = (port: number) => ranges.some(([from = -1, to = from]) => port >= from && port <= to);
  return sides[option].some(({ port }) => port !== undefined && listed(port)) !== negated;
}

function isKeyOf<Key extends string>(object: Readonly<Record<Key, unknown>>, key: string | undefined): key is Key {
  return key !== undefined && Object.hasOwn(object, key);
}
