import { socketText } from "@fairlead/base";
import type { RuleWithSets } from "@fairlead/kernel";
import {
  type NftFamily,
  type NftTraceEvent,
  PROTOCOLS,
  ruleText,
  type TracedPacket,
  verdictText,
} from "@fairlead/netfilter/nft";

/** Where a step was taken. */
export interface EventPlace {
  /** `ip kube-proxy` */
  readonly table: string;
  /** Of the base chain that the packet came in by; undefined: it is not known. */
  readonly hook: string | undefined;
  /** The family of the packet. */
  readonly ip: NftFamily;
}

/** `PACKET 5f3a21bc, in by eth0: tcp 192.0.2.9:40000 → 10.96.0.10:80` */
export function packetLine(id: number, packet: TracedPacket, interfaceName: (number: number) => string): string {
  const { inInterface, outInterface, protocol, source, sport, destination, dport } = packet;
  const way = [
    ...(inInterface === undefined ? [] : [`in by ${interfaceName(inInterface)}`]),
    ...(outInterface === undefined ? [] : [`out by ${interfaceName(outInterface)}`]),
  ];
  const name = Object.entries(PROTOCOLS).find(([, number]) => number === protocol)?.[0] ?? `protocol ${protocol}`;
  const [from, to] = [endText(source, sport), endText(destination, dport)];
  return `${[`PACKET ${idText(id)}`, ...way].join(", ")}: ${name} ${from} → ${to}`;
}

/** ` TRACE 5f3a21bc PREROUTING ip kube-proxy services: ip daddr … vmap @service-ips → goto endpoints-2` */
export function eventLine(
  event: NftTraceEvent,
  { table, hook, ip }: EventPlace,
  found: RuleWithSets | undefined,
): string {
  const { id, chain, kind, verdict } = event;
  const end = verdict === undefined ? "elsewhere" : verdictText(verdict);
  const place = [hook?.toUpperCase(), table, chain].filter((part) => part !== undefined).join(" ");
  return ` TRACE ${idText(id)} ${place}: ${kind === "rule" ? ruleEventText(event, found, ip) : END_TEXTS[kind]} → ${end}`;
}

const END_TEXTS = { return: "end of the chain", policy: "policy" } as const;

function ruleEventText({ handle }: NftTraceEvent, found: RuleWithSets | undefined, ip: NftFamily): string {
  if (found === undefined) return `rule with handle ${handle}, which is gone`;
  return ruleText(found.rule, { family: ip, sets: found.sets });
}

function idText(id: number): string {
  return id.toString(16).padStart(8, "0");
}

function endText(address: string, port: number | undefined): string {
  return port === undefined ? address : socketText(address, port);
}
