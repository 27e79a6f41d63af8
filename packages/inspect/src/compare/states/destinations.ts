/** The destinations that rules of a kernel name, of iptables and of nftables. */

import { bytesText, socketText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { ChainState, Rule, SavedChain } from "@fairlead/netfilter";
import {
  bytesOf,
  type DataType,
  type Expression,
  type Hex,
  IP_FAMILY,
  lengthOf,
  type NftTable,
  PROTOCOLS,
} from "@fairlead/netfilter/nft";
import type { KernelState } from "../ways.ts";

/** Every single address and port, and every port of the node, that rules or virtual servers speak of. */
export function destinationsOf(state: KernelState, family: IPFamily): ReadonlyMap<string, Destination> {
  const inRules = (state.nftables ?? []).flatMap((table) => [...destinationsInRules(table, family)]);
  return new Map([...eachDestination(state, family), ...inRules].map((one) => [destinationText(one), one]));
}

/**
 * The same one after the other, some more than once, of nftables those that maps dispatch: large listings take their
 * time.
 */
export function* eachDestination(
  { ruleSet, nftables = [], environment }: KernelState,
  family: IPFamily,
): Generator<Destination, void, undefined> {
  for (const table of ["nat", "filter"] as const) {
    for (const chain of ruleSet.get(table)?.chains.values() ?? []) {
      for (const rule of rulesSaying(chain, /--dport /)) yield* destinationOf(rule);
    }
  }
  for (const table of nftables) yield* destinationsInNft(table, family);
  for (const { protocol, address, port, family: of } of environment.ipvs?.servers ?? []) {
    if (of === family) yield { protocol: protocol.toLowerCase(), address, port };
  }
}

/** Something that packets can be sent to. */
export interface Destination {
  /** tcp, udp or sctp */
  readonly protocol: string;
  /** Canonical address; absent: a port of the node. */
  readonly address?: string;
  readonly port: number;
}

/** `tcp 10.96.0.10:80`, `tcp [fd00::10]:80`, `tcp node port 30080` */
export function destinationText({ protocol, address, port }: Destination): string {
  if (address === undefined) return `${protocol} node port ${port}`;
  return `${protocol} ${socketText(address, port)}`;
}

/** Where the source address is in the header. */
const SOURCES = {
  ip: { family: "IPv4", offset: 12, length: 4 },
  ip6: { family: "IPv6", offset: 8, length: 16 },
} as const;

/** CIDRs that rules compare the source address with; single hosts are no class of senders. */
export function* sourcesInNft({ family, chains }: NftTable, of: IPFamily): Generator<string> {
  if (SOURCES[family].family !== of) return;
  for (const { rules } of chains.values()) {
    for (const { expressions } of rules) yield* sourcesIn(expressions, SOURCES[family]);
  }
}

/**
 * The rules of a chain that may say something, by their text where there is one: of large listings few rules are read.
 */
export function* rulesSaying(chain: ChainState | SavedChain, something: RegExp): Generator<Rule, void, undefined> {
  if (!("ruleAt" in chain)) return yield* chain.rules;
  for (const [at, text] of chain.texts.entries()) {
    const rule = something.test(text) ? chain.ruleAt(at) : undefined;
    if (rule !== undefined) yield rule;
  }
}

const HOST_LENGTH = /\/(?:32|128)$/;

function destinationOf({ destination, protocol, matches }: Rule): readonly Destination[] {
  const ports = matches.flatMap((match) => ("dport" in match && match.dport !== undefined ? [match.dport] : []));
  const [port] = ports;
  if (port === undefined || port.negated || port.from !== port.to || protocol?.negated) return [];
  const base = { protocol: protocol?.value ?? "tcp", port: port.from };
  if (destination === undefined) return [base];
  if (destination.negated || !HOST_LENGTH.test(destination.cidr)) return [];
  return [{ ...base, address: destination.cidr.replace(HOST_LENGTH, "") }];
}

/** The name of an IP protocol by its number, one byte; the number where it has no name. */
function protocolText(hex: Hex): string {
  const number = Number.parseInt(hex, 16);
  return Object.entries(PROTOCOLS).find(([, known]) => known === number)?.[0] ?? String(number);
}

/** What a map of verdicts has: addresses and ports, and ports of the node (`ip daddr . meta l4proto . th dport`). */
function* destinationsInNft({ family, sets }: NftTable, of: IPFamily): Generator<Destination> {
  if (IP_FAMILY[family] !== of) return;
  for (const { key, data, elements } of sets.values()) {
    if (data !== "verdict") continue;
    const [first, ...rest] = key;
    const isAddress = first === "ipv4_addr" || first === "ipv6_addr";
    if ((isAddress ? rest : key).join() !== "inet_proto,inet_service") continue;
    const length = isAddress ? 2 * lengthOf([first]) : 0;
    for (const { key: hex } of elements.values()) {
      yield { ...portIn(hex.slice(length)), ...(isAddress && { address: bytesText(bytesOf(hex.slice(0, length))) }) };
    }
  }
}

/** `meta l4proto . th dport` */
function portIn(hex: Hex): Pick<Destination, "protocol" | "port"> {
  return { protocol: protocolText(hex.slice(0, 2)), port: Number.parseInt(hex.slice(8, 12), 16) };
}

type Field = "address" | "protocol" | "port";

/** What a rule asks of the packets that it is for, by field. */
type DestinationMatch = Readonly<Partial<Record<Field, Hex>>>;

/** Where the destination address is in the header. */
const ADDRESSES = { ip: { offset: 16, length: 4 }, ip6: { offset: 24, length: 16 } } as const;

/**
 * Addresses and ports that rules compare packets with, by themselves or in sets; ports with no address are the node's.
 * What a map leads on is in its elements, not here.
 */
function* destinationsInRules(table: NftTable, of: IPFamily): Generator<Destination> {
  if (IP_FAMILY[table.family] !== of) return;
  for (const { rules } of table.chains.values()) {
    for (const { expressions } of rules) {
      for (const { address, protocol, port } of askedBy(expressions, table)) {
        if (port === undefined) continue;
        yield {
          protocol: protocol === undefined ? "tcp" : protocolText(protocol),
          port: Number.parseInt(port, 16),
          ...(address !== undefined && { address: bytesText(bytesOf(address)) }),
        };
      }
    }
  }
}

/** Several where a set has several elements. */
function askedBy(expressions: readonly Expression[], table: NftTable): readonly DestinationMatch[] {
  const fields = new Map<number, Field>();
  let asked: readonly DestinationMatch[] = [{}];
  for (const one of expressions) {
    const more = alternatives(one, fields, table);
    if (more.length > 0) asked = asked.flatMap((before) => more.map((part) => ({ ...before, ...part })));
    if (!("to" in one) || typeof one.to !== "number") continue;
    const field = one.kind === "payload" || one.kind === "meta" ? fieldOf(one, table) : undefined;
    if (field === undefined) fields.delete(one.to);
    else fields.set(one.to, field);
  }
  return asked;
}

/** What an expression asks of the fields that were loaded; none where it asks for nothing that is looked for here. */
function alternatives(
  one: Expression,
  fields: ReadonlyMap<number, Field>,
  { sets }: Pick<NftTable, "sets">,
): readonly DestinationMatch[] {
  if (one.kind === "cmp") {
    const field = one.operator === "==" ? fields.get(one.from) : undefined;
    return field === undefined ? [] : [{ [field]: one.value }];
  }
  if (one.kind !== "lookup" || one.to !== undefined || one.inverted) return [];
  const set = sets.get(one.set);
  if (set === undefined) return [];
  const elements = [...set.elements.values()].filter(({ intervalEnd }) => !intervalEnd);
  return elements.map(({ key }) => partsOf(set.key, key, one.from, fields));
}

function fieldOf(one: Extract<Expression, { readonly kind: "payload" | "meta" }>, { family }: NftTable) {
  if (one.kind === "meta") return one.key === "l4proto" ? "protocol" : undefined;
  const { base, offset, length } = one;
  if (base === "transport") return offset === 2 && length === 2 ? "port" : undefined;
  const address = ADDRESSES[family];
  return offset === address.offset && length === address.length ? "address" : undefined;
}

function partsOf(
  types: readonly DataType[],
  key: Hex,
  from: number,
  fields: ReadonlyMap<number, Field>,
): DestinationMatch {
  const asked: Partial<Record<Field, Hex>> = {};
  let at = 0;
  for (const type of types) {
    const length = lengthOf([type]);
    const field = fields.get(from + at / 4);
    if (field !== undefined) asked[field] = key.slice(2 * at, 2 * (at + length));
    at += Math.ceil(length / 4) * 4;
  }
  return asked;
}

function* sourcesIn(expressions: readonly Expression[], source: (typeof SOURCES)[keyof typeof SOURCES]) {
  for (const [at, load] of expressions.entries()) {
    if (load.kind !== "payload" || load.base !== "network" || load.offset !== source.offset) continue;
    const [next, behind] = [expressions[at + 1], expressions[at + 2]];
    const mask = next?.kind === "bitwise" ? next.mask : "ff".repeat(load.length);
    const compared = next?.kind === "bitwise" ? behind : next;
    if (compared?.kind !== "cmp") continue;
    const bits = onesIn(mask);
    if (bits === 0 || bits === 8 * source.length) continue;
    yield `${bytesText(bytesOf(compared.value.padEnd(2 * source.length, "0")))}/${bits}`;
  }
}

function onesIn(mask: Hex): number {
  return [...bytesOf(mask)].reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);
}
