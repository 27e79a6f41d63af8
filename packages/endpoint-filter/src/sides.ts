/** The CIDRs that decide, each on its side. */

import {
  type AddressWords,
  type Groups,
  type IPFamily,
  ipv4Number,
  ipv6Groups,
  mappedIPv4,
  PrefixMap,
  prefixLengthOf,
} from "@fairlead/base";
import { parseCIDR } from "./validate.ts";

/** Whose a CIDR is: another network's, or this proxy's own inside of one. */
export type CIDRSide = "excluded" | "own";

interface Sided {
  readonly cidr: string;
  readonly side: CIDRSide;
}

/**
 * The CIDRs that decide, each on one side. The most specific one that an address lies in says where it is. A value: a
 * change gives another one, and costs the same however many CIDRs there are.
 */
export class CIDRSides {
  readonly #cidrs: PrefixMap<Sided>;
  readonly #excluded: number;
  readonly #regions: Partial<Record<IPFamily, readonly string[]>> = {};

  private constructor(cidrs: PrefixMap<Sided>, excluded: number) {
    this.#cidrs = cidrs;
    this.#excluded = excluded;
  }

  /** No CIDRs: every endpoint is in this cluster's own network. */
  static readonly none: CIDRSides = new CIDRSides(PrefixMap.empty(), 0);

  /**
   * A CIDR that is on both sides is an excluded one.
   *
   * @param excluded checked by `parseExcludeCIDRs`; `own` likewise
   * @throws TypeError for what it would refuse by itself
   */
  static of(excluded: Iterable<string>, own: Iterable<string> = []): CIDRSides {
    let cidrs = PrefixMap.empty<Sided>();
    for (const text of own) cidrs = withSide(cidrs, checked(text), "own");
    const others = new Set(Array.from(excluded, checked));
    for (const cidr of others) cidrs = withSide(cidrs, cidr, "excluded");
    return new CIDRSides(cidrs, others.size);
  }

  /**
   * @param cidr canonical
   * @param side undefined: on none
   * @returns itself when nothing changes
   */
  with(cidr: string, side: CIDRSide | undefined): CIDRSides {
    const before = this.side(cidr);
    if (before === side) return this;
    const cidrs = side === undefined ? this.#cidrs.without(cidr) : withSide(this.#cidrs, cidr, side);
    return new CIDRSides(cidrs, this.#excluded + (side === "excluded" ? 1 : 0) - (before === "excluded" ? 1 : 0));
  }

  /**
   * The side of exactly this CIDR; undefined where it is on neither.
   *
   * @param cidr canonical
   */
  side(cidr: string): CIDRSide | undefined {
    return this.#cidrs.get(cidr)?.side;
  }

  /** Those of a side, the most specific first, then by text: an order that does not depend on the history. */
  all(side: CIDRSide): readonly string[] {
    const found = Array.from(this.#cidrs.values()).filter((one) => one.side === side);
    return found.map(({ cidr }) => cidr).sort((a, b) => prefixLengthOf(b) - prefixLengthOf(a) || (a < b ? -1 : 1));
  }

  /**
   * The most specific CIDR around an address, on whichever side; undefined: there is none.
   *
   * @param address canonical; a text that is not an address lies nowhere
   */
  containing(address: string): string | undefined {
    const words = wordsOf(address);
    return words && this.#cidrs.find(words)?.cidr;
  }

  /**
   * The excluded CIDR that decides for an address; undefined: an own one does, or none.
   *
   * @param address canonical; a text that is not an address lies nowhere
   */
  excluding(address: string): string | undefined {
    // Most clusters exclude nothing, and have an address for each of their pods.
    if (this.#excluded === 0) return undefined;
    const words = wordsOf(address);
    const found = words && this.#cidrs.find(words);
    return found?.side === "excluded" ? found.cidr : undefined;
  }

  /** Addresses of a family for which an excluded CIDR decides: the fewest CIDRs, sorted; the same list each time. */
  regions(family: IPFamily): readonly string[] {
    this.#regions[family] ??= this.#cidrs.regions(family, ({ side }) => side === "excluded");
    return this.#regions[family];
  }
}

function withSide(cidrs: PrefixMap<Sided>, cidr: string, side: CIDRSide): PrefixMap<Sided> {
  return cidrs.with(cidr, { cidr, side });
}

/** An IPv4-mapped address is the IPv4 one. */
function wordsOf(address: string): AddressWords | undefined {
  const value = ipv4Number(address);
  if (value !== -1) return [value];
  const groups = ipv6Groups(address);
  if (groups === undefined) return undefined;
  const mapped = mappedIPv4(groups);
  return mapped === undefined ? groupsWords(groups) : [mapped];
}

/** Without a second look at the text, as this runs for every IPv6 endpoint. */
function groupsWords([a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0]: Groups): AddressWords {
  return [a * 0x1_0000 + b, c * 0x1_0000 + d, e * 0x1_0000 + f, g * 0x1_0000 + h];
}

function checked(text: string): string {
  const written = parseCIDR(text);
  if (written === undefined || written.hostBits || written.mapped) {
    throw new TypeError(`${JSON.stringify(text)} is not the CIDR of a network; parseExcludeCIDRs reports why`);
  }
  return written.network.text;
}
