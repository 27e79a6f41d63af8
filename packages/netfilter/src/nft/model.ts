/** Tables, chains, rules and sets of nftables as data. */

import type { Verdict } from "./expressions/kind.ts";
import type { Expression } from "./expressions/table.ts";
import { addressHex, bytesOf, type DataType, type Hex, hexOf, type NamedObject, type NftFamily } from "./types.ts";

/** A table as the kernel holds it. */
export interface NftTable {
  /** The family of the packets that reach it. */
  readonly family: NftFamily;
  /** Unique within the family. */
  readonly name: string;
  /** What people read of it in a listing. */
  readonly comment?: string;
  /** Packets do not reach its chains (`flags dormant`). */
  readonly dormant?: true;
  /** By name. */
  readonly chains: ReadonlyMap<string, NftChain>;
  /** Sets and maps, by name; anonymous ones have the names that the kernel gave them (`__set0`). */
  readonly sets: ReadonlyMap<string, NftSet>;
  /** By name; absent: there is none. */
  readonly flowtables?: ReadonlyMap<string, NftFlowtable>;
}

/**
 * Connections whose packets go from one device to another at the ingress hook, without meeting rules. Rules put
 * connections there (`flow add`).
 */
export interface NftFlowtable {
  /** Unique in its table. */
  readonly name: string;
  /** Among what else is at the devices' ingress hook. */
  readonly priority: number;
  /** Names; the kernel takes out devices that go. */
  readonly devices: readonly string[];
  /** Connection tracking goes on counting packets and bytes. Linux 5.7. */
  readonly counter?: true;
}

export const HOOKS = ["prerouting", "input", "forward", "output", "postrouting"] as const;
/** A hook of netfilter, as nft spells it. */
export type Hook = (typeof HOOKS)[number];

/** What makes a chain a base chain: packets come to it by themselves. */
export interface BaseChain {
  /** nat: asked for the first packet of a connection only. route: a changed mark or address is routed again. */
  readonly type: "filter" | "nat" | "route";
  /** Where packets come to it. */
  readonly hook: Hook;
  /** Chains of one hook run in ascending order of this number. */
  readonly priority: number;
  /** What becomes of a packet that no rule decides. */
  readonly policy: "accept" | "drop";
}

/** A chain with its rules. */
export interface NftChain {
  /** Unique within the table. */
  readonly name: string;
  /** Absent: packets come by jump and goto only. */
  readonly base?: BaseChain;
  /** What people read of it in a listing. */
  readonly comment?: string;
  /** In their order. */
  readonly rules: readonly NftRule[];
}

/** A rule: expressions that the kernel evaluates in their order until one does not match. */
export interface NftRule {
  /** Matches and statements. */
  readonly expressions: readonly Expression[];
  /** What people read of it in a listing. */
  readonly comment?: string;
  /** The number by which the kernel knows it; absent in what is only planned. */
  readonly handle?: bigint;
}

/** A set, or a map where it has `data`. */
export interface NftSet {
  /** Unique within the table. */
  readonly name: string;
  /** One type, or the parts of a concatenation. */
  readonly key: readonly DataType[];
  /** What a map gives for a key: a verdict, or a value of these types. */
  readonly data?: "verdict" | readonly DataType[];
  /** In place of `data`: the map leads to named objects of this kind. */
  readonly objects?: NamedObject;
  /** What the set may do: hold intervals, be filled by packets, let elements go. */
  readonly flags: readonly SetFlag[];
  /** After which an element goes that has no time of its own, milliseconds. */
  readonly timeout?: number;
  /** The most elements that it takes; absent: as many as there is memory for. */
  readonly size?: number;
  /** What people read of it in a listing. */
  readonly comment?: string;
  /** What `nft` needs to print the set as it was written, alongside the comment: attributes of libnftnl's user data. */
  readonly userData?: Hex;
  /** By their key's bytes. */
  readonly elements: ReadonlyMap<Hex, SetElement>;
}

/** linux/netfilter/nf_tables.h, enum nft_set_flags: those that are used here. */
export const SET_FLAGS = {
  anonymous: 0x1,
  constant: 0x2,
  interval: 0x4,
  map: 0x8,
  timeout: 0x10,
  dynamic: 0x20,
} as const;
/** A flag of a set, as nft spells it. */
export type SetFlag = Exclude<keyof typeof SET_FLAGS, "map">;

/** An element of a set or map. */
export interface SetElement {
  /** Each part padded to a multiple of four bytes where the key is a concatenation. */
  readonly key: Hex;
  /** A map's value. */
  readonly value?: Hex | Verdict;
  /** The name of the object that a map of named objects leads to. */
  readonly object?: string;
  /** After which it goes, milliseconds, where that is not what the set says. */
  readonly timeout?: number;
  /** Until it goes, milliseconds: what is read of a set with timeouts has it, and what is written may. */
  readonly expires?: number;
  /** In a set of intervals: the element is the first address behind one (NFT_SET_ELEM_INTERVAL_END). */
  readonly intervalEnd?: true;
  /** What people read of it in a listing. */
  readonly comment?: string;
}

/**
 * The elements of a set of intervals that holds the addresses of CIDRs.
 *
 * @param cidrs canonical, of one family, sorted, none within another one
 */
export function intervalElements(cidrs: readonly string[]): readonly SetElement[] {
  const elements: SetElement[] = [];
  for (const cidr of cidrs) {
    const [address = "", length = ""] = cidr.split("/");
    const first = addressHex(address);
    // One that begins where the last one ends goes on with it.
    if (elements.at(-1)?.key === first) elements.pop();
    else elements.push({ key: first });
    const behind = nextHex(lastOfPrefix(first, Number(length)));
    if (behind !== undefined) elements.push({ key: behind, intervalEnd: true });
  }
  return elements;
}

/** What distinguishes an element from others of its set: where one interval ends, another one may begin. */
export function elementKey({ key, intervalEnd }: Pick<SetElement, "key" | "intervalEnd">): string {
  return intervalEnd ? `${key} end` : key;
}

export function lastOfPrefix(first: Hex, length: number): Hex {
  const bytes = bytesOf(first);
  return hexOf(bytes.map((byte, at) => byte | (0xff >> Math.min(8, Math.max(0, length - 8 * at)))));
}

/** The value behind one; undefined behind the highest. */
export function nextHex(hex: Hex): Hex | undefined {
  const bytes = bytesOf(hex);
  for (let at = bytes.length - 1; at >= 0; at -= 1) {
    const byte = bytes[at] ?? 0;
    bytes[at] = byte + 1;
    if (byte < 0xff) return hexOf(bytes);
  }
  return undefined;
}
