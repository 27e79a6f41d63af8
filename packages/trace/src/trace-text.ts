import { familyOf, isLoopback, parseAddress } from "@fairlead/base";
import { parseSave } from "@fairlead/netfilter";
import { readTables } from "@fairlead/netfilter/nft";
import type { Environment } from "./environment.ts";
import type { Exploration } from "./outcome.ts";
import type { Packet, Rules } from "./packet.ts";
import { explore } from "./trace.ts";

/** `192.0.2.9→10.96.0.10:80`, `[fd00::9]:40000->[fd00::10]:53/udp` */
const PACKET =
  /^\s*(?:\[([^\]]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?\s*(?:→|->)\s*(?:\[([^\]]+)\]|([^\s:[\]/]+)):(\d{1,5})(?:\/(tcp|udp|sctp))?\s*$/i;

const FORM = "must be SOURCE→ADDRESS:PORT[/PROTOCOL], such as 192.0.2.9→10.96.0.10:80 or [fd00::9]→[fd00::10]:53/udp";

const SPORT = 40_000;
const OUTER_INTERFACE = "eth0";

/**
 * The way of one packet through rules, in one call.
 *
 * @param rules what iptables-save, ip6tables-save or nft list printed
 * @param packet `SOURCE→ADDRESS:PORT[/PROTOCOL]`, or `->`; the protocol is tcp unless it says otherwise, the source
 * port 40000. A source on loopback, or one of the environment's local addresses, sends it from this host; any other
 * packet comes in by the interface that leads back to it, eth0 where that is not known
 * @throws RangeError for a packet that is none
 * @throws RuleParseError, SyntaxError for rules that are none
 * @throws PacketError as `explore`
 */
export function traceText(rules: string, packet: string, environment: Environment = {}): Exploration {
  const sent = packetOf(packet, environment);
  return explore(rulesOf(rules, sent.family), sent, environment);
}

function packetOf(text: string, { localAddresses = [], outInterface }: Environment): Packet {
  const [, fromSix, from, sport, toSix, to, dport, protocol = "tcp"] = PACKET.exec(text) ?? [];
  const source = parseAddress(fromSix ?? from ?? "")?.text;
  const destination = parseAddress(toSix ?? to ?? "")?.text;
  if (source === undefined || destination === undefined) throw refusal(text, FORM);
  const family = familyOf(source);
  if (familyOf(destination) !== family) throw refusal(text, "must have both addresses of one family");
  const own = isLoopback(source) || new Set(localAddresses).has(source);
  return {
    family,
    protocol: protocol.toLowerCase(),
    source,
    sport: sport === undefined ? SPORT : portOf(text, sport),
    destination,
    dport: portOf(text, dport ?? ""),
    ...(!own && { inInterface: outInterface?.(source) ?? OUTER_INTERFACE }),
  };
}

function portOf(text: string, given: string): number {
  const port = Number(given);
  if (port < 1 || port > 65_535) throw refusal(text, "must have ports from 1 to 65535");
  return port;
}

function refusal(text: string, right: string): RangeError {
  return new RangeError(`${JSON.stringify(text)} ${right}`);
}

const NFT_TEXT = /^(?:\s|#.*\n)*table \S+ \S+ \{/;

function rulesOf(text: string, family: Packet["family"]): Rules {
  if (!NFT_TEXT.test(text)) return { iptables: parseSave(text), nftables: [] };
  const wanted = family === "IPv4" ? "ip" : "ip6";
  return { iptables: new Map(), nftables: readTables(text).filter((table) => table.family === wanted) };
}
